#include "src/torch/memory/program_heap.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace etude {

#if defined(__GLIBC__)

namespace {

constexpr size_t kFirstThreshold = 128 << 10;
constexpr size_t kThresholdMax = 32 << 20;

std::atomic<size_t> threshold = kFirstThreshold;
std::atomic<bool> keep = false;
std::atomic<int64_t> give_back = 0;
// Minimum size of a block whose pages are returned.
constexpr size_t kLeastGivenBack = 64 << 10;

void SetThreshold(size_t bytes) {
  if (keep.load(std::memory_order_relaxed)) return;
  threshold.store(bytes, std::memory_order_relaxed);
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(bytes));
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(2 * bytes));
}

// Returns the pages of a block to the system, except those shared with neighbours.
void GiveBackPages(void* block, size_t bytes) {
  if (bytes < kLeastGivenBack) return;
  const int64_t left = give_back.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  if (left <= 0) return;
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(block) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(block) + bytes) / page * page;
  const auto most = (static_cast<uintptr_t>(left) + page - 1) / page * page;
  if (end <= begin) return;
  madvise(reinterpret_cast<void*>(begin), std::min(end - begin, most), MADV_DONTNEED);
}

void Free(void* block) {
  const size_t bytes = block == nullptr ? 0 : malloc_usable_size(block);
  if (give_back.load(std::memory_order_relaxed) > 0) GiveBackPages(block, bytes);
  c10::free_cpu(block);
  if (bytes <= threshold.load(std::memory_order_relaxed) || bytes > kThresholdMax) return;
  SetThreshold(bytes);
}

// Returns whether the heap must not be changed: the user configured it, so that a program's does
// not adapt either, or the process uses another allocator than the C library's.
bool IsSet() {
  Dl_info in_use{};
  if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &in_use) == 0 ||
      std::strstr(in_use.dli_fname, "libc.so") == nullptr) {
    return true;
  }
  for (const char* name : {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_",
                           "MALLOC_MMAP_MAX_"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  const char* tunables = std::getenv("GLIBC_TUNABLES");
  return tunables != nullptr && std::strstr(tunables, "glibc.malloc.") != nullptr;
}

// PyTorch's CPU allocation, with Free above.
class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* block = c10::alloc_cpu(bytes);
    return {block, block, &Free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

void FixHeap() {
  if (!IsSet()) SetThreshold(kFirstThreshold);
}

void FollowTensors() {
  if (IsSet()) return;
  static Allocator allocator;
  c10::SetCPUAllocator(&allocator, 1);
}

void RaiseMapThreshold(int64_t bytes) {
  if (IsSet() || bytes < 0) return;
  const size_t wanted = std::min(static_cast<size_t>(bytes), kThresholdMax);
  if (wanted > threshold.load()) SetThreshold(wanted);
}

int64_t MapThreshold() { return IsSet() ? 0 : static_cast<int64_t>(threshold.load()); }

bool KeepFreed() {
  if (IsSet()) return false;
  keep.store(true, std::memory_order_relaxed);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  return mallopt(M_MMAP_MAX, 0) != 0;
}

void GiveBack(int64_t bytes) { give_back.store(bytes, std::memory_order_relaxed); }

#else

void FixHeap() {}
void FollowTensors() {}
void RaiseMapThreshold(int64_t) {}
int64_t MapThreshold() { return 0; }
bool KeepFreed() { return false; }
void GiveBack(int64_t) {}

#endif

}  // namespace etude
