#include "src/suite/nn/compression/multi_scale_ssim.h"

#include <array>
#include <cmath>
#include <cstddef>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr std::array<double, kSsimScales> kExponents = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};
constexpr int64_t kWindowSide = 11;
constexpr double kWindowDeviation = 1.5;
constexpr double kLuminanceConstant = 0.01 * 0.01;  // of values from 0 to 1
constexpr double kContrastConstant = 0.03 * 0.03;
constexpr double kLeastDifference = 1e-10;  // mean square: 100 dB

// The window along one dimension.
std::array<double, kWindowSide> WindowWeights() {
  std::array<double, kWindowSide> weights{};
  double sum = 0;
  for (int64_t i = 0; i < kWindowSide; ++i) {
    const double distance = static_cast<double>(i - kWindowSide / 2) / kWindowDeviation;
    weights[static_cast<size_t>(i)] = std::exp(-distance * distance / 2);
    sum += weights[static_cast<size_t>(i)];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// Returns the means within windows, by additions, which autocast leaves in float32:
// [N, C, H, W] → [N, C, H − 10, W − 10].
at::Tensor Smoothed(const at::Tensor& x) {
  static constexpr std::array<int64_t, 2> kDimensions = {2, 3};
  const std::array<double, kWindowSide> weights = WindowWeights();
  at::Tensor smoothed = x;
  for (const int64_t dimension : kDimensions) {
    const int64_t size = smoothed.size(dimension) - kWindowSide + 1;
    at::Tensor sum = smoothed.narrow(dimension, 0, size) * weights[0];
    for (int64_t i = 1; i < kWindowSide; ++i) {
      sum.add_(smoothed.narrow(dimension, i, size), weights[static_cast<size_t>(i)]);
    }
    smoothed = sum;
  }
  return smoothed;
}

at::Tensor HalfSize(const at::Tensor& x) {
  return AveragePool2d(x, {.kernel = {2}, .stride = {2}});
}

}  // namespace

at::Tensor MultiScaleSsim(const at::Tensor& pictures, const at::Tensor& copies) {
  at::Tensor x = pictures;
  at::Tensor y = copies;
  at::Tensor similarity = Ones({x.size(0), x.size(1)}).to(x.device());
  for (size_t scale = 0; scale < kExponents.size(); ++scale) {
    if (scale > 0) {
      x = HalfSize(x);
      y = HalfSize(y);
    }
    const at::Tensor mean_x = Smoothed(x);
    const at::Tensor mean_y = Smoothed(y);
    const at::Tensor product = mean_x * mean_y;
    const at::Tensor squares = mean_x * mean_x + mean_y * mean_y;
    const at::Tensor covariance = Smoothed(x * y) - product;
    const at::Tensor variances = Smoothed(x * x + y * y) - squares;
    at::Tensor of_scale = (covariance * 2 + kContrastConstant) / (variances + kContrastConstant);
    if (scale + 1 == kExponents.size()) {
      of_scale = of_scale * (product * 2 + kLuminanceConstant) / (squares + kLuminanceConstant);
    }
    similarity = similarity * of_scale.flatten(2).mean(2).clamp_min(0).pow(kExponents[scale]);
  }
  return similarity.mean(1);
}

at::Tensor PeakSignalToNoise(const at::Tensor& pictures, const at::Tensor& copies) {
  const at::Tensor difference = (pictures - copies).square().flatten(1).mean(1);
  return difference.clamp_min(kLeastDifference).log10() * -10;
}

}  // namespace etude::suite
