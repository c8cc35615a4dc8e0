#include "src/suite/nn/adversarial/sliced_wasserstein.h"

#include <tuple>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kCoarsestSide = 4;

}  // namespace

SlicedWasserstein::SlicedWasserstein(const Shape& shape) {
  SeedTorch(shape.seed);
  for (int64_t side = shape.side; side >= kCoarsestSide; side /= 2) {
    const at::Tensor drawn = Normal({shape.channels * side * side, shape.directions}, 0, 1);
    directions_.push_back(drawn / drawn.square().sum(0, /*keepdim=*/true).sqrt());
  }
}

SlicedWasserstein::Projections SlicedWasserstein::Project(const at::Tensor& pictures) const {
  // The distance is that of single precision in all runs.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  Projections projections;
  at::Tensor scaled = pictures.to(at::kCPU, at::kFloat);
  for (const at::Tensor& directions : directions_) {
    if (!projections.empty()) scaled = AveragePool2d(scaled, {.kernel = {2}, .stride = {2}});
    projections.push_back(std::get<0>(scaled.flatten(1).matmul(directions).sort(0)));
  }
  return projections;
}

double SlicedWasserstein::Distance(const Projections& left, const Projections& right) {
  double sum = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    TORCH_CHECK(left[i].sizes() == right[i].sizes(), "sets of ", left[i].sizes(), " and ",
                right[i].sizes());
    sum += (left[i] - right[i]).abs().mean().item<double>();
  }
  return sum / static_cast<double>(left.size());
}

}  // namespace etude::suite
