#include "src/synth/network_works.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/synth/network_builder.h"
#include "src/synth/network_presets.h"

namespace etude {
namespace {

Network Preset(std::string_view name) {
  const NetworkPreset* preset = FindNetworkPreset(CnnPresets(), name);
  if (preset == nullptr) preset = FindNetworkPreset(DiffusionPresets(), name);
  EXPECT_NE(preset, nullptr) << name;
  auto network = MakeNetwork(preset->make());
  EXPECT_TRUE(network) << network.error().message;
  return *std::move(network);
}

// Multiply-accumulates of an image forward.
int64_t Products(const Network& network) {
  const NetworkCosts costs(network, 1, NetworkPhase::kInference);
  int64_t flops = 0;
  for (size_t i = 0; i < network.model.layers.size(); ++i) {
    if (const auto work = costs.Of(i).forward) flops += work->matrix_flops;
  }
  return flops / 2;
}

// Parameters and multiply-accumulates of images of 224 × 224 as torchvision documents its models'
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
    const Network network = Preset(known.name);
    EXPECT_EQ(network.parameters(), known.parameters) << known.name;
    EXPECT_NEAR(static_cast<double>(Products(network)) / 1e9, known.giga, 5.01e-4) << known.name;
  }
  EXPECT_EQ(Products(Preset("resnet-50")), 4'089'184'256);
}

// 35.7 M (Ho et al. 2020, appendix B); 859,520,964 of the published weights; 675 M and 118.6 Gflops
// (Peebles and Xie 2023, table 4), 294,912 of which are positions that are not trained.
TEST(NetworkPresets, ParametersOfDiffusion) {
  EXPECT_EQ(Preset("ddpm-cifar10").parameters(), 35'746'307);
  EXPECT_EQ(Preset("stable-diffusion-1.5").parameters(), 859'520'964);
  const Network dit = Preset("dit-xl-2");
  EXPECT_EQ(dit.parameters() + 256 * 1152, 675'129'632);
  EXPECT_NEAR(static_cast<double>(Products(dit)) / 1e9, 118.6, 0.05);
}

}  // namespace
}  // namespace etude
