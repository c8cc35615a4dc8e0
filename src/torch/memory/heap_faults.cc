#include "src/torch/memory/heap_faults.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "src/torch/memory/program_heap.h"

namespace etude {
namespace {

// Negligible number of faults.
constexpr int64_t kFew = 64;
// Maximum of returned pages per wanted fault: not all pages are used again.
constexpr int64_t kMost = 4;

}  // namespace

void HeapFaults::Want(std::optional<int64_t> wanted) {
  wanted_ = wanted;
  settling_ = true;
}

void HeapFaults::BeforeStep() const {
  if (wanted_) GiveBack(given_back_);
}

void HeapFaults::AfterStep(int64_t faults) {
  if (!wanted_) return;
  GiveBack(0);
  const int64_t missing = *wanted_ - faults;
  if (settling_) {
    settling_ = false;
    return;
  }
  if (std::abs(missing) <= std::max(kFew, *wanted_ / 20)) return;
  const int64_t page = sysconf(_SC_PAGESIZE);
  if (!keeps_) {
    keeps_ = KeepFreed();
    if (keeps_) given_back_ = *wanted_ * page;
  } else {
    given_back_ = std::clamp<int64_t>(given_back_ + missing * page, 0, kMost * *wanted_ * page);
  }
  // Memory returned by a step affects the next one.
  settling_ = true;
}

}  // namespace etude
