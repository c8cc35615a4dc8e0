#include "src/suite/nn/resnet.h"

#include <fmt/format.h>

namespace etude::suite {
namespace {

constexpr int64_t kExpansion = 4;  // factor on a bottleneck's width

Conv2d Convolution(const Scope& scope, int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return Conv2d(scope, in, out, {.kernel = {kernel}, .stride = {stride}, .padding = {kernel / 2}},
                /*bias=*/false, Conv2d::Start::kHe);
}

}  // namespace

ResidualBlock::ResidualBlock(const Scope& scope, int64_t in, int64_t width, int64_t stride,
                             bool bottleneck)
    : out_(bottleneck ? width * kExpansion : width) {
  const auto add = [&](int64_t from, int64_t to, int64_t kernel, int64_t step) {
    const size_t number = convolutions_.size() + 1;
    convolutions_.push_back(
        Convolution(scope[fmt::format("conv{}", number)], from, to, kernel, step));
    norms_.emplace_back(scope[fmt::format("bn{}", number)], to);
  };
  if (bottleneck) {
    add(in, width, 1, 1);
    add(width, width, 3, stride);
    add(width, out_, 1, 1);
  } else {
    add(in, width, 3, stride);
    add(width, width, 3, 1);
  }
  if (in == out_ && stride == 1) return;
  fit_ = Convolution(scope["downsample"]["0"], in, out_, 1, stride);
  fit_norm_.emplace(scope["downsample"]["1"], out_);
}

void ResidualBlock::FixNorms() {
  for (BatchNorm& norm : norms_) norm.Fix();
  if (fit_norm_) fit_norm_->Fix();
}

at::Tensor ResidualBlock::operator()(const at::Tensor& x) const {
  at::Tensor y = x;
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    y = norms_[i](convolutions_[i](y));
    if (i + 1 < convolutions_.size()) y = y.relu_();
  }
  return y.add_(fit_ ? (*fit_norm_)((*fit_)(x)) : x).relu_();
}

ResNet::ResNet(const Scope& scope, const ResNetShape& shape)
    : large_images_(shape.large_images),
      first_(Convolution(scope["conv1"], shape.channels, shape.width, shape.large_images ? 7 : 3,
                         shape.large_images ? 2 : 1)),
      first_norm_(scope["bn1"], shape.width) {
  if (shape.fixed_norms) first_norm_.Fix();
  int64_t in = shape.width;
  for (size_t stage = 0; stage < shape.blocks.size(); ++stage) {
    const Scope place = scope[fmt::format("layer{}", stage + 1)];
    std::vector<ResidualBlock>& blocks = stages_.emplace_back();
    for (int64_t block = 0; block < shape.blocks[stage]; ++block) {
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      blocks.emplace_back(place[block], in, shape.width << stage, stride, shape.bottlenecks);
      if (shape.fixed_norms) blocks.back().FixNorms();
      in = blocks.back().out();
    }
  }
}

at::Tensor ResNet::Begin(const at::Tensor& x) const {
  const at::Tensor y = first_norm_(first_(x)).relu_();
  return large_images_ ? MaxPool2d(y, {.kernel = {3}, .stride = {2}, .padding = {1}}) : y;
}

at::Tensor ResNet::Stage(size_t stage, const at::Tensor& x) const {
  at::Tensor y = x;
  for (const ResidualBlock& block : stages_[stage]) y = block(y);
  return y;
}

at::Tensor ResNet::operator()(const at::Tensor& x) const {
  at::Tensor y = Begin(x);
  for (size_t stage = 0; stage < stages_.size(); ++stage) y = Stage(stage, y);
  return y;
}

}  // namespace etude::suite
