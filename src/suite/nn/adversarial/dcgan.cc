#include "src/suite/nn/adversarial/dcgan.h"

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kSmallestSide = 4;
constexpr double kDcganSlope = 0.2;
constexpr double kScaleDeviation = 0.02;

// A convolution between the smallest side and a single position, and one that halves a side.
Window WholeWindow() { return {.kernel = {kSmallestSide}}; }
Window HalvingWindow() { return {.kernel = {4}, .stride = {2}, .padding = {1}}; }

// Channels at the smallest side.
int64_t WidestOf(const DcganShape& shape) { return shape.width * shape.side / (2 * kSmallestSide); }

BatchNorm NormOf(const Scope& scope, int64_t channels) {
  BatchNorm norm(scope, channels);
  norm.scale().detach().copy_(Normal({channels}, 1, kScaleDeviation));
  return norm;
}

}  // namespace

DcganGenerator::DcganGenerator(const Scope& scope, const DcganShape& shape)
    : grow_([&] {
        std::vector<std::pair<TransposedConv2d, BatchNorm>> layers;
        int64_t in = shape.noise;
        for (int64_t out = WidestOf(shape); out >= shape.width; out /= 2) {
          const Scope layer = scope[static_cast<int64_t>(layers.size())];
          TransposedConv2d grow(layer["conv"], in, out,
                                layers.empty() ? WholeWindow() : HalvingWindow(),
                                /*more=*/0, /*bias=*/false);
          layers.emplace_back(std::move(grow), NormOf(layer["bn"], out));
          in = out;
        }
        return layers;
      }()),
      last_(scope["last"], shape.width, shape.channels, HalvingWindow(), /*more=*/0,
            /*bias=*/false) {}

at::Tensor DcganGenerator::operator()(const at::Tensor& noise) const {
  at::Tensor x = noise.unsqueeze(2).unsqueeze(3);
  for (const auto& [grow, norm] : grow_) x = norm(grow(x)).relu();
  return last_(x).tanh();
}

DcganCritic::DcganCritic(const Scope& scope, const DcganShape& shape)
    : first_(scope["first"], shape.channels, shape.width, HalvingWindow(), /*bias=*/false,
             Conv2d::Start::kDcgan),
      shrink_([&] {
        std::vector<std::pair<Conv2d, BatchNorm>> layers;
        for (int64_t in = shape.width; in < WidestOf(shape); in *= 2) {
          const Scope layer = scope[static_cast<int64_t>(layers.size())];
          Conv2d shrink(layer["conv"], in, 2 * in, HalvingWindow(), /*bias=*/false,
                        Conv2d::Start::kDcgan);
          layers.emplace_back(std::move(shrink), NormOf(layer["bn"], 2 * in));
        }
        return layers;
      }()),
      last_(scope["last"], WidestOf(shape), 1, WholeWindow(), /*bias=*/false,
            Conv2d::Start::kDcgan) {}

at::Tensor DcganCritic::operator()(const at::Tensor& pictures) const {
  at::Tensor x = LeakyRelu(first_(pictures), kDcganSlope);
  for (const auto& [shrink, norm] : shrink_) x = LeakyRelu(norm(shrink(x)), kDcganSlope);
  return last_(x).flatten();
}

}  // namespace etude::suite
