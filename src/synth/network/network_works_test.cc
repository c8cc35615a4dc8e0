#include "src/synth/network/network_works.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/synth/network/network_builder.h"
#include "src/synth/network/network_presets.h"

namespace etude {
namespace {

Network PresetNetwork(std::string_view name) {
  const NetworkPreset* preset = FindPreset(CnnPresets(), name);
  if (preset == nullptr) preset = FindPreset(DiffusionPresets(), name);
  EXPECT_NE(preset, nullptr) << name;
  auto network = MakeNetwork(preset->model());
  EXPECT_TRUE(network) << network.error().message;
  return *std::move(network);
}

// Returns the multiply-accumulates of an image in the forward pass.
int64_t Products(const Network& network) {
  const NetworkCosts costs(network, 1, NetworkPhase::kInference);
  int64_t flops = 0;
  for (size_t i = 0; i < network.model.layers.size(); ++i) {
    if (const auto work = costs.Of(i).forward) flops += work->matrix_flops;
  }
  return flops / 2;
}

// Parameters and multiply-accumulates for images of 224 × 224, as documented by torchvision
// ('num_params', '_ops'; resnet-50's are 4.089 GFLOPS).
TEST(NetworkPresets, ParametersAndProductsAsPublished) {
  struct Known {
    std::string_view name;
    int64_t parameters;
    double giga;  // to three decimals
  };
  for (const Known& known : std::to_array<Known>({{"resnet-18", 11'689'512, 1.814},
                                                  {"resnet-34", 21'797'672, 3.664},
                                                  {"resnet-50", 25'557'032, 4.089},
                                                  {"resnet-101", 44'549'160, 7.801},
                                                  {"resnet-152", 60'192'808, 11.514},
                                                  {"vgg-16", 138'357'544, 15.470},
                                                  {"mobilenet-v2", 3'504'872, 0.301},
                                                  {"efficientnet-b0", 5'288'548, 0.386}})) {
    const Network network = PresetNetwork(known.name);
    EXPECT_EQ(network.parameters(), known.parameters) << known.name;
    EXPECT_NEAR(static_cast<double>(Products(network)) / 1e9, known.giga, 5.01e-4) << known.name;
  }
  EXPECT_EQ(Products(PresetNetwork("resnet-50")), 4'089'184'256);
}

// 35.7 M (Ho et al. 2020, appendix B); 859,520,964 in the published weights; 675 M and 118.6 Gflops
// (Peebles and Xie 2023, table 4), 294,912 of which are positions that are not trained.
TEST(NetworkPresets, ParametersOfDiffusion) {
  EXPECT_EQ(PresetNetwork("ddpm-cifar10").parameters(), 35'746'307);
  EXPECT_EQ(PresetNetwork("stable-diffusion-1.5").parameters(), 859'520'964);
  const Network dit = PresetNetwork("dit-xl-2");
  EXPECT_EQ(dit.parameters() + 256 * 1152, 675'129'632);
  EXPECT_NEAR(static_cast<double>(Products(dit)) / 1e9, 118.6, 0.05);
}

// Makes a network of an input and one layer; users of its result do not matter.
Network One(Shape in, NetworkLayer layer, bool trained = false) {
  NetworkBuilder b;
  size_t x = b.Input("in", in);
  // Makes the gradient of the input necessary.
  if (trained) x = b.Linear("before", x, in.channels, false);
  x = b.Add("one", {x}, std::move(layer));
  b.Plain("loss", {x}, LayerKind::kSquaredError);
  auto network = MakeNetwork(std::move(b.model()));
  EXPECT_TRUE(network) << network.error().message;
  return *std::move(network);
}

NetworkWorks WorksOfOne(const Network& network, NetworkPhase phase = NetworkPhase::kTraining) {
  return NetworkCosts(network, 2, phase).Of(network.model.layers.size() - 2);
}

void ExpectWork(const std::optional<NetworkWork>& work, int64_t flops, int64_t read,
                int64_t written) {
  ASSERT_TRUE(work);
  EXPECT_EQ(work->flops, flops);
  EXPECT_EQ(work->read.count, read);
  EXPECT_EQ(work->written.count, written);
}

// Two images of 16 × 17 × 20 to 32 × 9 × 16, each value a sum of 16 · 15 products: 4,423,680
// operations forward and for each gradient, as counted by PyTorch's FlopCounterMode.
TEST(NetworkCosts, Convolution) {
  const NetworkLayer conv{.kind = LayerKind::kConv,
                          .shape = {.channels = 32},
                          .kernel = {3, 5},
                          .stride = {2, 1},
                          .padding = {1, 2},
                          .dilation = {1, 2}};
  const Network network = One({16, 17, 20}, conv, true);
  EXPECT_EQ(network.shapes[2], (Shape{32, 9, 16}));
  EXPECT_EQ(ParametersOf(conv, network.InputsOf(2)), 7'712);
  const NetworkWorks works = WorksOfOne(network);
  ExpectWork(works.forward, 4'423'680 + 9'216, (10'880 + 7'712) * 4, 9'216 * 4);
  ExpectWork(works.input_gradient, 4'423'680, (9'216 + 7'680) * 4, 10'880 * 4);
  ExpectWork(works.weight_gradient, 4'423'680 + 9'216, (10'880 + 9'216) * 4, 7'712 * 4);
  EXPECT_EQ(works.forward->matrix_flops, 4'423'680);
  EXPECT_EQ(works.weight_gradient->matrix_flops, 4'423'680);
  // An image needs no gradient; with groups there are as many times fewer products.
  EXPECT_FALSE(WorksOfOne(One({16, 17, 20}, conv)).input_gradient);
  NetworkLayer grouped = conv;
  grouped.groups = 4;
  EXPECT_EQ(WorksOfOne(One({16, 17, 20}, grouped)).forward->matrix_flops, 1'105'920);
}

// Two images of 5 positions, 24 to 7 channels: 3,360 operations as counted by FlopCounterMode.
TEST(NetworkCosts, Linear) {
  const Network network =
      One({24, 5, 1}, {.kind = LayerKind::kLinear, .shape = {.channels = 7}}, true);
  const NetworkWorks works = WorksOfOne(network);
  ExpectWork(works.forward, 3'360 + 70, (240 + 175) * 4, 70 * 4);
  ExpectWork(works.input_gradient, 3'360, (70 + 168) * 4, 240 * 4);
  ExpectWork(works.weight_gradient, 3'360 + 70, (240 + 70) * 4, 175 * 4);
  EXPECT_EQ(works.weight_gradient->product, (ProductShape{1, 7, 10, 24}));
}

// 25,088 · 4,096 weights and 4,096 biases; 25,088 and 4,096 values of the image.
TEST(NetworkCosts, GradientsAreReadOnceThereAreAny) {
  const Network network = PresetNetwork("vgg-16");
  const std::vector<NetworkLayer>& layers = network.model.layers;
  const auto linear = std::ranges::find(layers, "head.linear1", &NetworkLayer::name);
  ASSERT_NE(linear, layers.end());
  const auto layer = static_cast<size_t>(linear - layers.begin());
  const NetworkCosts costs(network, 1, NetworkPhase::kTraining);
  const NetworkWork first = *costs.Of(layer).weight_gradient;
  EXPECT_EQ((first.read + first.written).count, 411'174'912);
  const NetworkWork later = *costs.Of(layer, true).weight_gradient;
  EXPECT_EQ((later.read + later.written).count, 411'174'912 + 411'058'176);
  // Not for layers without weights.
  EXPECT_EQ(costs.Of(layer + 1, true).input_gradient, costs.Of(layer + 1).input_gradient);

  // 16 scales and offsets.
  const Network norm = One({8, 4, 4}, {.kind = LayerKind::kBatchNorm}, true);
  const NetworkWorks works = NetworkCosts(norm, 2, NetworkPhase::kTraining).Of(2, true);
  ExpectWork(works.input_gradient, 13 * 256, (2 * 256 + 16 + 16) * 4, (256 + 16) * 4);
  const NetworkCosts inference(norm, 2, NetworkPhase::kInference);
  EXPECT_FALSE(inference.Of(2, true).input_gradient);
}

// 2 · 8 · 4 · 4 = 256 elements.
TEST(NetworkCosts, Norms) {
  const Shape in{8, 4, 4};
  for (const LayerKind kind :
       {LayerKind::kBatchNorm, LayerKind::kGroupNorm, LayerKind::kLayerNorm}) {
    const NetworkLayer layer{.kind = kind, .groups = 2};
    const NetworkWorks works = WorksOfOne(One(in, layer, true));
    ExpectWork(works.forward, 7 * 256, (256 + 16) * 4, 256 * 4);
    ExpectWork(works.input_gradient, 13 * 256, (2 * 256 + 16) * 4, (256 + 16) * 4);
    EXPECT_FALSE(works.weight_gradient);
    const NetworkWorks inference = WorksOfOne(One(in, layer), NetworkPhase::kInference);
    EXPECT_EQ(inference.forward->flops, (kind == LayerKind::kBatchNorm ? 2 : 7) * 256);
    EXPECT_FALSE(inference.input_gradient);
  }
  const NetworkWorks plain =
      WorksOfOne(One(in, {.kind = LayerKind::kLayerNorm, .affine = false}, true));
  ExpectWork(plain.forward, 5 * 256, 256 * 4, 256 * 4);
  ExpectWork(plain.input_gradient, 9 * 256, 2 * 256 * 4, 256 * 4);
}

TEST(NetworkCosts, ElementwiseAndPools) {
  const Shape in{8, 4, 4};
  ExpectWork(WorksOfOne(One(in, {.kind = LayerKind::kSilu}, true)).input_gradient, 9 * 256,
             2 * 256 * 4, 256 * 4);
  const NetworkWorks gated = WorksOfOne(One(in, {.kind = LayerKind::kGeglu}, true));
  ExpectWork(gated.forward, 6 * 128, 256 * 4, 128 * 4);
  ExpectWork(gated.input_gradient, 14 * 128, (128 + 256) * 4, 256 * 4);
  // 2 · 8 · 2 · 2 = 64 outputs, each the max of 9, with a place of 8 bytes.
  const NetworkWorks pool = WorksOfOne(
      One(in, {.kind = LayerKind::kMaxPool, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
          true));
  ExpectWork(pool.forward, 8 * 64, 256 * 4, 64 * 4 + 64 * 8);
  ExpectWork(pool.input_gradient, 64, 64 * 4 + 64 * 8, 256 * 4);
  const NetworkWorks mean = WorksOfOne(One(in, {.kind = LayerKind::kGlobalPool}, true));
  ExpectWork(mean.forward, 256, 256 * 4, 16 * 4);
  ExpectWork(mean.input_gradient, 16, 16 * 4, 256 * 4);
  const NetworkWorks larger =
      WorksOfOne(One(in, {.kind = LayerKind::kUpsample, .factor = 2}, true));
  ExpectWork(larger.forward, 0, 256 * 4, 1024 * 4);
  ExpectWork(larger.input_gradient, 768, 1024 * 4, 256 * 4);
}

// Queries at 9 positions, keys at 7, 4 heads of 6 channels, two images: 2 · 4 · 9 · 7 = 504 pairs,
// with 12 operations per product.
TEST(NetworkCosts, CrossAttention) {
  NetworkBuilder b;
  const size_t x = b.Linear("q", b.Input("image", {24, 3, 3}), 24);
  const size_t text = b.Input("text", {10, 7, 1});
  const size_t k = b.Linear("k", text, 24);
  const size_t v = b.Linear("v", text, 24);
  const size_t y = b.Add("attention", {x, k, v}, {.kind = LayerKind::kAttention, .heads = 4});
  b.Plain("loss", {y}, LayerKind::kSquaredError);
  const auto network = MakeNetwork(std::move(b.model()));
  ASSERT_TRUE(network) << network.error().message;
  EXPECT_EQ(network->shapes[y], (Shape{24, 3, 3}));
  const NetworkWorks works = NetworkCosts(*network, 2, NetworkPhase::kTraining).Of(y);
  ExpectWork(works.forward, 2 * 12 * 504 + 6 * 504, (432 + 2 * 336) * 4, 432 * 4);
  ExpectWork(works.input_gradient, 5 * 12 * 504 + 8 * 504 + 2 * 432, (3 * 432 + 2 * 336) * 4,
             (432 + 2 * 336) * 4);
}

// x of 8 × 4 × 4 with vectors of 8: 256 and 16 elements.
TEST(NetworkCosts, Vectors) {
  NetworkBuilder b;
  const size_t in = b.Linear("x", b.Input("image", {8, 4, 4}), 8);
  const size_t vectors = b.Linear("vectors", b.Input("number", {1, 1, 1}), 16);
  const size_t first = b.Slice("first", vectors, 8, 0);
  const size_t second = b.Slice("second", vectors, 8, 8);
  const size_t add = b.Plain("add", {in, first}, LayerKind::kAdd);
  const size_t multiply = b.Plain("multiply", {add, second}, LayerKind::kMultiply);
  const size_t modulate = b.Plain("modulate", {multiply, first, second}, LayerKind::kModulate);
  b.Plain("loss", {modulate}, LayerKind::kSquaredError);
  const auto network = MakeNetwork(std::move(b.model()));
  ASSERT_TRUE(network) << network.error().message;
  const NetworkCosts costs(*network, 2, NetworkPhase::kTraining);
  EXPECT_FALSE(costs.Of(first).forward || costs.Of(first).input_gradient) << "a view";
  ExpectWork(costs.Of(add).forward, 256, (256 + 16) * 4, 256 * 4);
  ExpectWork(costs.Of(add).input_gradient, 256, 256 * 4, 16 * 4);
  ExpectWork(costs.Of(multiply).input_gradient, 256 + 512, (2 * 256 + 16) * 4, (256 + 16) * 4);
  ExpectWork(costs.Of(modulate).forward, 512 + 16, (256 + 32) * 4, 256 * 4);
  ExpectWork(costs.Of(modulate).input_gradient, 4 * 256 + 16, (2 * 256 + 16) * 4, (256 + 32) * 4);
  ExpectWork(costs.GradientSum(in, 3), 2 * 256, 3 * 256 * 4, 256 * 4);
}

// Two images: 96 values go into the convolution, 256 into the norm, 256 come out of the ReLU, 16 go
// into the linear layer; the softmax of 20 logits is in single precision.
TEST(NetworkCosts, LossAndWhatIsKept) {
  NetworkBuilder b;
  size_t x = b.Conv("conv", b.Input("image", {3, 4, 4}), 8, {});
  x = b.Plain("norm", {x}, LayerKind::kBatchNorm);
  x = b.Plain("pool", {b.Plain("relu", {x}, LayerKind::kRelu)}, LayerKind::kGlobalPool);
  const size_t loss = b.Plain("loss", {b.Linear("linear", x, 10)}, LayerKind::kCrossEntropy);
  b.model().weights = DType::kBFloat16;
  const auto network = MakeNetwork(std::move(b.model()));
  ASSERT_TRUE(network) << network.error().message;
  const NetworkCosts costs(*network, 2, NetworkPhase::kTraining);
  EXPECT_EQ(costs.Kept().count, (96 + 256 + 256 + 16) * 2 + 20 * 4);
  ExpectWork(costs.Of(loss).forward, 4 * 20 + 2 * 2, 20 * 2 + 2 * 8, (20 + 2) * 4);
  ExpectWork(costs.Of(loss).input_gradient, 2 * 20, 20 * 4 + 2 * 8, 20 * 2);
}

TEST(NetworkCosts, Updates) {
  NetworkModel model;
  ExpectWork(UpdateWork(model, OptimizerKind::kSgd, 10), 60, 10 * (4 + 2 * 4), 10 * 2 * 4);
  model.weights = DType::kBFloat16;
  ExpectWork(UpdateWork(model, OptimizerKind::kAdam, 10), 140, 10 * (4 + 3 * 4), 10 * (3 * 4 + 2));
  ExpectWork(AverageWork(model, 10), 30, 80, 40);
}

TEST(NetworkCosts, NumbersThatDoNotFit) {
  const Network network = PresetNetwork("vgg-16");
  EXPECT_TRUE(CheckNetworkWork(network, 1 << 20));
  EXPECT_FALSE(CheckNetworkWork(network, 0));
  NetworkModel model = network.model;
  const auto large = MakeNetwork(std::move(model), Extent{1 << 17, 1 << 17});
  EXPECT_FALSE(large && CheckNetworkWork(*large, 1 << 24));
}

}  // namespace
}  // namespace etude
