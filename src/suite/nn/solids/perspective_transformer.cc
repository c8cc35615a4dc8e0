#include "src/suite/nn/solids/perspective_transformer.h"

#include <cmath>
#include <cstddef>
#include <numbers>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kPictureKernel = 5;
constexpr int64_t kFirstSide = 4;  // of a volume
constexpr double kSmallDeviation = 0.02;
constexpr double kEmptyBias = -2;        // a share of 0.12
constexpr double kBelowTwo = 0.0227501;  // share of a normal distribution two deviations below

at::Tensor TruncatedNormal(at::IntArrayRef sizes) {
  return Uniform(sizes, 2 * kBelowTwo - 1, 1 - 2 * kBelowTwo).erfinv() *
         (std::numbers::sqrt2 * kSmallDeviation);
}

int64_t Volume(int64_t side) { return side * side * side; }

}  // namespace

PerspectiveTransformer::PerspectiveTransformer(const Scope& scope, const PtnShape& shape)
    : shape_(shape) {
  const auto add = [&](std::vector<Layer>& layers, const Scope& part, at::IntArrayRef sizes,
                       int64_t fan_in, int64_t out) {
    const bool is_he = shape.start == PtnShape::Start::kHe;
    const Scope place = part[std::ssize(layers)];
    layers.push_back(
        {place.Parameter("weight",
                         is_he ? Normal(sizes, 0, std::sqrt(2 / static_cast<double>(fan_in)))
                               : TruncatedNormal(sizes)),
         place.Parameter("bias", Zeros({out}))});
  };
  int64_t channels = shape.colours;
  for (int64_t out = shape.filters; out <= 4 * shape.filters; channels = out, out *= 2) {
    add(convolutions_, scope["conv"], {out, channels, kPictureKernel, kPictureKernel},
        channels * kPictureKernel * kPictureKernel, out);
  }
  int64_t width = channels * (shape.side / 8) * (shape.side / 8);
  for (const int64_t out :
       {shape.hidden, shape.hidden, shape.code, shape.channels.front() * Volume(kFirstSide)}) {
    add(linear_, scope["fc"], {out, width}, width, out);
    width = out;
  }
  for (size_t i = 0; i < shape.kernels.size(); ++i) {
    const int64_t in = shape.channels[i];
    const int64_t out = shape.channels[i + 1];
    const int64_t side = shape.kernels[i];
    // With stride 2, an eighth of a kernel meets each place.
    add(growing_, scope["deconv"], {in, out, side, side, side}, in * Volume(side) / 8, out);
  }
  if (shape.start != PtnShape::Start::kHe) return;
  const Layer& last = growing_.back();
  const at::Tensor start = Normal(last.weight.sizes(), 0, kSmallDeviation);
  last.weight.data().copy_(start);
  last.bias.data().fill_(kEmptyBias);
}

at::Tensor PerspectiveTransformer::operator()(const at::Tensor& pictures) const {
  at::Tensor x = pictures * 2 - 1;
  const Window halving{.kernel = {kPictureKernel}, .stride = {2}, .padding = {kPictureKernel / 2}};
  for (const Layer& layer : convolutions_) {
    x = Convolution2d(x, layer.weight, layer.bias, halving).relu();
  }
  x = x.flatten(1);
  for (const Layer& layer : linear_) x = layer.bias.addmm(x, layer.weight.t()).relu();
  x = x.view({x.size(0), shape_.channels.front(), kFirstSide, kFirstSide, kFirstSide});
  for (size_t i = 0; i < growing_.size(); ++i) {
    const int64_t kernel = shape_.kernels[i];
    const int64_t side = 2 * x.size(2);
    // Of an odd kernel's surplus, the larger part is cut off at the end.
    x = TransposedConvolution3d(x, growing_[i].weight, growing_[i].bias,
                                {.kernel = {kernel}, .stride = {2}, .padding = {(kernel - 2) / 2}});
    if (x.size(2) > side) x = x.narrow(2, 0, side).narrow(3, 0, side).narrow(4, 0, side);
    x = i + 1 < growing_.size() ? x.relu() : x.sigmoid();
  }
  return x;
}

}  // namespace etude::suite
