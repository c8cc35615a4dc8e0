#include "src/suite/nn/adversarial/cycle_gan.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr double kPatchSlope = 0.2;
constexpr int64_t kMostWidening = 8;

Conv2d ConvolutionOf(const Scope& scope, int64_t in, int64_t out, Window window) {
  return Conv2d(scope, in, out, std::move(window), /*bias=*/true, Conv2d::Start::kDcgan);
}

}  // namespace

ResNetTranslator::ResNetTranslator(const Scope& scope, const Shape& shape)
    : first_(ConvolutionOf(scope["first"], 3, shape.width, {.kernel = {7}})),
      last_(ConvolutionOf(scope["last"], shape.width, 3, {.kernel = {7}})) {
  int64_t width = shape.width;
  for (int64_t i = 0; i < shape.halvings; ++i, width *= 2) {
    shrink_.push_back(ConvolutionOf(scope["shrink"][i], width, 2 * width,
                                    {.kernel = {3}, .stride = {2}, .padding = {1}}));
  }
  for (int64_t i = 0; i < shape.blocks; ++i) {
    const Scope block = scope["blocks"][i];
    blocks_.emplace_back(ConvolutionOf(block["conv1"], width, width, {.kernel = {3}}),
                         ConvolutionOf(block["conv2"], width, width, {.kernel = {3}}));
  }
  for (int64_t i = 0; i < shape.halvings; ++i, width /= 2) {
    grow_.emplace_back(scope["grow"][i], width, width / 2,
                       Window{.kernel = {3}, .stride = {2}, .padding = {1}}, /*more=*/1);
  }
}

at::Tensor ResNetTranslator::operator()(const at::Tensor& pictures) const {
  at::Tensor x = InstanceNormalised(first_(ReflectionPad(pictures, 3))).relu();
  for (const Conv2d& shrink : shrink_) x = InstanceNormalised(shrink(x)).relu();
  for (const auto& [first, second] : blocks_) {
    const at::Tensor y = InstanceNormalised(first(ReflectionPad(x, 1))).relu();
    x = x + InstanceNormalised(second(ReflectionPad(y, 1)));
  }
  for (const TransposedConv2d& grow : grow_) x = InstanceNormalised(grow(x)).relu();
  return last_(ReflectionPad(x, 3)).tanh();
}

PatchCritic::PatchCritic(const Scope& scope, const Shape& shape)
    : layers_([&] {
        std::vector<Conv2d> layers;
        int64_t in = 3;
        for (int64_t i = 0; i <= shape.halvings; ++i) {
          const int64_t out = shape.width * std::min(int64_t{1} << i, kMostWidening);
          const int64_t stride = i < shape.halvings ? 2 : 1;
          layers.push_back(ConvolutionOf(scope[i], in, out,
                                         {.kernel = {4}, .stride = {stride}, .padding = {1}}));
          in = out;
        }
        return layers;
      }()),
      last_(ConvolutionOf(scope["last"],
                          shape.width * std::min(int64_t{1} << shape.halvings, kMostWidening), 1,
                          {.kernel = {4}, .padding = {1}})) {}

at::Tensor PatchCritic::operator()(const at::Tensor& pictures) const {
  at::Tensor x = LeakyRelu(layers_.front()(pictures), kPatchSlope);
  for (size_t i = 1; i < layers_.size(); ++i) {
    x = LeakyRelu(InstanceNormalised(layers_[i](x)), kPatchSlope);
  }
  return last_(x);
}

ImagePool::ImagePool(const Scope& scope, int64_t capacity, int64_t side)
    : pictures_(scope.Buffer("pictures", Zeros({capacity, 3, side, side}))),
      count_(scope.Buffer("count", Zeros({1}, at::kLong))) {}

at::Tensor ImagePool::Exchange(const at::Tensor& fresh) const {
  const at::NoGradGuard no_gradients;
  const int64_t capacity = pictures_.size(0);
  int64_t count = count_.item<int64_t>();
  const at::Tensor draws = Uniform({fresh.size(0), 2}, 0, 1);
  const auto* draw = draws.const_data_ptr<float>();
  at::Tensor given = fresh.detach().clone();
  for (int64_t i = 0; i < fresh.size(0); ++i, draw += 2) {
    if (count < capacity) {
      pictures_[count++].copy_(fresh[i]);
    } else if (draw[0] < 0.5F) {
      const auto slot = static_cast<int64_t>(draw[1] * static_cast<float>(capacity));
      const at::Tensor kept = pictures_[std::min(slot, capacity - 1)];
      given[i].copy_(kept);
      kept.copy_(fresh[i]);
    }
  }
  count_.fill_(count);
  return given;
}

}  // namespace etude::suite
