#include "src/synth/network/network_presets.h"

#include <algorithm>
#include <array>
#include <vector>

#include "src/synth/network/network_builder.h"

namespace etude {
namespace {

constexpr int64_t kClasses = 1000;
constexpr Shape kImageNet{3, 224, 224};

// Adds a convolution without biases, a norm and, unless it is kInput, an activation.
size_t ConvNorm(NetworkBuilder& b, std::string_view name, size_t in, int64_t channels,
                NetworkBuilder::Window window, LayerKind activation) {
  window.bias = false;
  const size_t conv = b.Conv(name, in, channels, window);
  const size_t norm = b.Plain(fmt::format("{} norm", name), {conv}, LayerKind::kBatchNorm);
  if (activation == LayerKind::kInput) return norm;
  return b.Plain(fmt::format("{} {}", name, Name(activation)), {norm}, activation);
}

NetworkModel Classify(NetworkBuilder& b, size_t in) {
  b.Unit("head");
  const size_t pool = b.Plain("pool", {in}, LayerKind::kGlobalPool);
  b.Plain("loss", {b.Linear("linear", pool, kClasses)}, LayerKind::kCrossEntropy);
  return std::move(b.model());
}

size_t ResidualBlock(NetworkBuilder& b, size_t in, int64_t channels, int64_t stride,
                     bool bottleneck, bool shortcut) {
  const int64_t expansion = bottleneck ? 4 : 1;
  size_t x = in;
  if (bottleneck) {
    x = ConvNorm(b, "conv1", x, channels, {.kernel = 1}, LayerKind::kRelu);
    x = ConvNorm(b, "conv2", x, channels, {.stride = stride}, LayerKind::kRelu);
    x = ConvNorm(b, "conv3", x, expansion * channels, {.kernel = 1}, LayerKind::kInput);
  } else {
    x = ConvNorm(b, "conv1", x, channels, {.stride = stride}, LayerKind::kRelu);
    x = ConvNorm(b, "conv2", x, channels, {}, LayerKind::kInput);
  }
  size_t past = in;
  if (shortcut) {
    past = ConvNorm(b, "shortcut", in, expansion * channels, {.kernel = 1, .stride = stride},
                    LayerKind::kInput);
  }
  return b.Plain("relu", {b.Plain("add", {x, past}, LayerKind::kAdd)}, LayerKind::kRelu);
}

// `blocks`: of each of four stages.
NetworkModel ResNet(const std::array<int64_t, 4>& blocks, bool bottleneck) {
  NetworkBuilder b;
  size_t x = b.Input("image", kImageNet);
  b.Unit("stem");
  x = ConvNorm(b, "conv", x, 64, {.kernel = 7, .stride = 2}, LayerKind::kRelu);
  x = b.MaxPool("pool", x, {.stride = 2});
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    const int64_t channels = int64_t{64} << stage;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      b.Unit(fmt::format("stage {}.{}", stage + 1, block));
      const bool first = block == 0;
      x = ResidualBlock(b, x, channels, first && stage > 0 ? 2 : 1, bottleneck,
                        first && (stage > 0 || bottleneck));
    }
  }
  return Classify(b, x);
}
NetworkModel ResNet18() { return ResNet({2, 2, 2, 2}, false); }
NetworkModel ResNet34() { return ResNet({3, 4, 6, 3}, false); }
NetworkModel ResNet50() { return ResNet({3, 4, 6, 3}, true); }
NetworkModel ResNet101() { return ResNet({3, 4, 23, 3}, true); }
NetworkModel ResNet152() { return ResNet({3, 8, 36, 3}, true); }

NetworkModel Vgg16() {
  NetworkBuilder b;
  size_t x = b.Input("image", kImageNet);
  const auto stages = std::to_array<std::pair<int64_t, int64_t>>(
      {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}});  // channels, convolutions
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    b.Unit(fmt::format("stage {}", stage + 1));
    for (int64_t i = 1; i <= stages[stage].second; ++i) {
      x = b.Conv(fmt::format("conv{}", i), x, stages[stage].first, {});
      x = b.Plain(fmt::format("relu{}", i), {x}, LayerKind::kRelu);
    }
    x = b.MaxPool("pool", x, {.kernel = 2, .stride = 2});
  }
  b.Unit("head");
  x = b.Plain("flatten", {x}, LayerKind::kFlatten);
  x = b.Plain("relu1", {b.Linear("linear1", x, 4096)}, LayerKind::kRelu);
  x = b.Plain("relu2", {b.Linear("linear2", x, 4096)}, LayerKind::kRelu);
  b.Plain("loss", {b.Linear("linear3", x, kClasses)}, LayerKind::kCrossEntropy);
  return std::move(b.model());
}

// Inverted residuals: expansion factor of the channels in between, and stage shape.
struct InvertedStage {
  int64_t expansion;
  int64_t channels;
  int64_t blocks;
  int64_t stride;
  int64_t kernel = 3;
};

NetworkModel MobileNetV2() {
  constexpr LayerKind kRelu6 = LayerKind::kRelu6;
  NetworkBuilder b;
  size_t x = b.Input("image", kImageNet);
  b.Unit("stem");
  x = ConvNorm(b, "conv", x, 32, {.stride = 2}, kRelu6);
  int64_t width = 32;
  int64_t number = 0;
  for (const InvertedStage& stage : std::to_array<InvertedStage>({{1, 16, 1, 1},
                                                                  {6, 24, 2, 2},
                                                                  {6, 32, 3, 2},
                                                                  {6, 64, 4, 2},
                                                                  {6, 96, 3, 1},
                                                                  {6, 160, 3, 2},
                                                                  {6, 320, 1, 1}})) {
    for (int64_t block = 0; block < stage.blocks; ++block) {
      b.Unit(fmt::format("block {}", number++));
      const int64_t inner = stage.expansion * width;
      const int64_t stride = block == 0 ? stage.stride : 1;
      const size_t in = x;
      if (stage.expansion != 1) x = ConvNorm(b, "expand", x, inner, {.kernel = 1}, kRelu6);
      x = ConvNorm(b, "depthwise", x, inner, {.stride = stride, .groups = inner}, kRelu6);
      x = ConvNorm(b, "project", x, stage.channels, {.kernel = 1}, LayerKind::kInput);
      if (stride == 1 && width == stage.channels) x = b.Plain("add", {in, x}, LayerKind::kAdd);
      width = stage.channels;
    }
  }
  b.Unit("last");
  return Classify(b, ConvNorm(b, "conv", x, 1280, {.kernel = 1}, kRelu6));
}

// The factors of the channels are computed from their means.
size_t SqueezeExcite(NetworkBuilder& b, size_t in, int64_t channels, int64_t squeezed) {
  size_t x = b.Plain("squeeze pool", {in}, LayerKind::kGlobalPool);
  x = b.Conv("squeeze", x, squeezed, {.kernel = 1});
  x = b.Plain("squeeze silu", {x}, LayerKind::kSilu);
  x = b.Conv("excite", x, channels, {.kernel = 1});
  x = b.Plain("excite sigmoid", {x}, LayerKind::kSigmoid);
  return b.Plain("excite multiply", {in, x}, LayerKind::kMultiply);
}

NetworkModel EfficientNetB0() {
  constexpr LayerKind kSilu = LayerKind::kSilu;
  NetworkBuilder b;
  size_t x = b.Input("image", kImageNet);
  b.Unit("stem");
  x = ConvNorm(b, "conv", x, 32, {.stride = 2}, kSilu);
  int64_t width = 32;
  int64_t number = 0;
  for (const InvertedStage& stage : std::to_array<InvertedStage>({{1, 16, 1, 1, 3},
                                                                  {6, 24, 2, 2, 3},
                                                                  {6, 40, 2, 2, 5},
                                                                  {6, 80, 3, 2, 3},
                                                                  {6, 112, 3, 1, 5},
                                                                  {6, 192, 4, 2, 5},
                                                                  {6, 320, 1, 1, 3}})) {
    for (int64_t block = 0; block < stage.blocks; ++block) {
      b.Unit(fmt::format("block {}", number++));
      const int64_t inner = stage.expansion * width;
      const int64_t stride = block == 0 ? stage.stride : 1;
      const size_t in = x;
      if (stage.expansion != 1) x = ConvNorm(b, "expand", x, inner, {.kernel = 1}, kSilu);
      x = ConvNorm(b, "depthwise", x, inner,
                   {.kernel = stage.kernel, .stride = stride, .groups = inner}, kSilu);
      x = SqueezeExcite(b, x, inner, std::max<int64_t>(1, width / 4));
      x = ConvNorm(b, "project", x, stage.channels, {.kernel = 1}, LayerKind::kInput);
      if (stride == 1 && width == stage.channels) x = b.Plain("add", {in, x}, LayerKind::kAdd);
      width = stage.channels;
    }
  }
  b.Unit("last");
  return Classify(b, ConvNorm(b, "conv", x, 1280, {.kernel = 1}, kSilu));
}

constexpr std::string_view kResNetSource =
    "He et al. 2015, arXiv 1512.03385, table 1, strides as in torchvision";

constexpr auto kCnnPresets = std::to_array<NetworkPreset>({
    {"resnet-18", kResNetSource, ResNet18},
    {"resnet-34", kResNetSource, ResNet34},
    {"resnet-50", kResNetSource, ResNet50},
    {"resnet-101", kResNetSource, ResNet101},
    {"resnet-152", kResNetSource, ResNet152},
    {"vgg-16", "Simonyan and Zisserman 2014, arXiv 1409.1556, table 1, D", Vgg16},
    {"mobilenet-v2", "Sandler et al. 2018, arXiv 1801.04381, table 2", MobileNetV2},
    {"efficientnet-b0", "Tan and Le 2019, arXiv 1905.11946, table 1", EfficientNetB0},
});

}  // namespace

std::span<const NetworkPreset> CnnPresets() { return kCnnPresets; }

}  // namespace etude
