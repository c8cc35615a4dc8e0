#include "src/suite/machine_peaks.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/core/Device.h>

#include "src/suite/guarded.h"
#include "src/torch/replay_device.h"

namespace etude::suite {
namespace {

constexpr int64_t kSide = 1536;                 // of the matrices
constexpr int64_t kCopied = int64_t{64} << 20;  // float32 elements
constexpr int kRepeats = 8;

// Returns the shortest time of several calls, in seconds.
double BestTime(const std::string& device, const std::function<void()>& work) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < kRepeats; ++i) {
    Synchronize(device);
    const auto begin = std::chrono::steady_clock::now();
    work();
    Synchronize(device);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

}  // namespace

Result<MachinePeaks> MeasurePeaks(const std::string& device, int64_t threads) {
  return Guarded("peaks of the machine", [&]() -> Result<MachinePeaks> {
    at::set_num_threads(static_cast<int>(threads));
    const auto options = at::TensorOptions().device(c10::Device(device)).dtype(at::kFloat);
    const at::Tensor a = at::ones({kSide, kSide}, options);
    const at::Tensor b = at::ones({kSide, kSide}, options);
    at::Tensor product = at::ones({kSide, kSide}, options);
    const double multiplied = BestTime(device, [&] { at::mm_out(product, a, b); });
    const at::Tensor from = at::ones({kCopied}, options);
    const at::Tensor to = at::ones({kCopied}, options);
    const double copied = BestTime(device, [&] { to.copy_(from); });
    constexpr auto kN = static_cast<double>(kSide);
    return MachinePeaks{.flop_per_s = 2 * kN * kN * kN / multiplied,
                        .bytes_per_s = 2 * static_cast<double>(kCopied) * sizeof(float) / copied};
  });
}

}  // namespace etude::suite
