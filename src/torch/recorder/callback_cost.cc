#include "src/torch/recorder/callback_cost.h"

#include <algorithm>
#include <array>
#include <memory>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/resolve_conj.h>
#include <ATen/record_function.h>

#include "src/torch/recorder/monotonic_time.h"

namespace etude::recorder {
namespace {

constexpr int kCalls = 50;
constexpr size_t kRounds = 15;

int64_t ClockNow() { return MonotonicTime().count; }

// These callbacks only read the clock like the recorder.
thread_local int64_t seen_by_callbacks = 0;
std::unique_ptr<at::ObserverContext> CountEnter(const at::RecordFunction&) {
  const int64_t begin = ClockNow();
  seen_by_callbacks += ClockNow() - begin;
  return nullptr;
}
void CountExit(const at::RecordFunction&, at::ObserverContext*) {
  const int64_t begin = ClockNow();
  seen_by_callbacks += ClockNow() - begin;
}

// Returns the time of kCalls calls of an identity operator, less the time inside callbacks.
int64_t TimeCalls(const at::Tensor& tensor) {
  seen_by_callbacks = 0;
  const int64_t begin = ClockNow();
  for (int i = 0; i < kCalls; ++i) (void)at::_ops::resolve_conj::call(tensor);
  return ClockNow() - begin - seen_by_callbacks;
}

}  // namespace

int64_t MeasureCallback() {
  try {
    const at::Tensor tensor = at::empty({1});
    std::array<int64_t, kRounds> without{};
    std::array<int64_t, kRounds> with{};
    for (size_t i = 0; i < kRounds; ++i) {
      without[i] = TimeCalls(tensor);
      const at::CallbackHandle handle =
          at::addThreadLocalCallback(at::RecordFunctionCallback(CountEnter, CountExit)
                                         .needsInputs(true)
                                         .needsOutputs(true)
                                         .needsIds(true));
      with[i] = TimeCalls(tensor);
      at::removeCallback(handle);
    }
    // Minima, because other rounds were interrupted.
    const int64_t more = *std::ranges::min_element(with) - *std::ranges::min_element(without);
    return std::max<int64_t>(more / kCalls, 0);
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace etude::recorder
