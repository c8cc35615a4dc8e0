#include "src/torch/program_heap.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

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

void SetThreshold(size_t bytes) {
  threshold.store(bytes, std::memory_order_relaxed);
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(bytes));
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(2 * bytes));
}

void Free(void* block) {
  const size_t bytes = block == nullptr ? 0 : malloc_usable_size(block);
  c10::free_cpu(block);
  if (bytes <= threshold.load(std::memory_order_relaxed) || bytes > kThresholdMax) return;
  SetThreshold(bytes);
}

// Whether the user has set the heap: then a program's does not adapt either.
bool IsSet() {
  for (const char* name : {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_",
                           "MALLOC_MMAP_MAX_"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  const char* tunables = std::getenv("GLIBC_TUNABLES");
  return tunables != nullptr && std::strstr(tunables, "glibc.malloc.") != nullptr;
}

// PyTorch's own way of making memory, with Free above.
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

#else

void FixHeap() {}
void FollowTensors() {}
void RaiseMapThreshold(int64_t) {}

#endif

}  // namespace etude
