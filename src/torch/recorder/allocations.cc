#include "src/torch/recorder/allocations.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace etude::recorder {
namespace {

// Set once, before the first piece of memory gets Release as its deleter, and never changed.
c10::DeleterFnPtr release_inner = nullptr;
AllocationReport report_to = nullptr;

void Release(void* address) {
  // Before: afterwards another thread may be given the same address.
  report_to(address, 0);
  release_inner(address);
}

// Passes everything on to PyTorch's own allocator. Memory gets a deleter that reports and then
// calls the one that it had; nothing else about it differs. The deleter is also the raw one, as all
// memory of an allocator must have that: who takes memory without its deleter (oneDNN) frees it by
// this.
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

// Made once and never destroyed: storages keep pointers to it.
WatchedAllocator* watched = nullptr;

}  // namespace

bool WatchAllocations(AllocationReport report, std::string& why) {
  c10::Allocator* const now = c10::GetCPUAllocator();
  if (watched == nullptr) {
    if (now->raw_deleter() == nullptr) {
      why = "the program's allocator does not say how its memory is freed";
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
  // Does nothing where an allocator was set with a higher priority.
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
