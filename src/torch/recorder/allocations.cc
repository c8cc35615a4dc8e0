#include "src/torch/recorder/allocations.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace etude::recorder {
namespace {

// Set once, before any memory gets Release as its deleter, and never changed.
c10::DeleterFnPtr release_inner = nullptr;
AllocationReport report_to = nullptr;

void Release(void* address) {
  // Before the release: afterwards another thread may get the same address.
  report_to(address, 0);
  release_inner(address);
}

// Forwards to PyTorch's allocator. Memory gets a deleter that reports and then calls the original
// one; nothing else changes. It is also the raw deleter, as required for all memory of an
// allocator: users that take memory without its deleter (oneDNN) free it with the raw one.
class WatchedAllocator final : public c10::Allocator {
 public:
  explicit WatchedAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr data = inner_->allocate(bytes);
    if (data.compare_exchange_deleter(release_inner, &Release) && data.get() != nullptr) {
      report_to(data.get(), bytes);
    }
    return data;
  }
  bool is_simple_data_ptr(const c10::DataPtr& data) const override {
    return inner_->is_simple_data_ptr(data);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }
  c10::Allocator* inner() const { return inner_; }

 private:
  c10::Allocator* const inner_;
};

// Never destroyed: storages keep pointers to it.
WatchedAllocator* watched = nullptr;

}  // namespace

bool WatchAllocations(AllocationReport report, std::string& why) {
  c10::Allocator* const now = c10::GetCPUAllocator();
  if (watched == nullptr) {
    if (now->raw_deleter() == nullptr) {
      why = "the program's allocator does not report how its memory is freed";
      return false;
    }
    release_inner = now->raw_deleter();
    report_to = report;
    watched = new WatchedAllocator(now);
  }
  if (now != watched->inner() && now != watched) {
    why = "the program has changed its allocator since the first recording";
    return false;
  }
  // No effect if an allocator with a higher priority is set.
  c10::SetCPUAllocator(watched);
  if (c10::GetCPUAllocator() != watched) {
    why = "the program has set an allocator of a higher priority";
    return false;
  }
  return true;
}

void UnwatchAllocations() {
  if (watched != nullptr && c10::GetCPUAllocator() == watched) {
    c10::SetCPUAllocator(watched->inner());
  }
}

}  // namespace etude::recorder
