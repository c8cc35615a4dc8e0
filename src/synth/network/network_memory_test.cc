#include "src/synth/network/network_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/synth/network/network_builder.h"
#include "src/synth/network/network_job.h"
#include "src/synth/network/network_presets.h"
#include "src/synth/network/network_testing.h"

namespace etude {
namespace {

using testing_network::SmallNetwork;

// Returns the memory beyond permanent states, work by work.
std::vector<std::pair<std::string, int64_t>> MemoryBeyondStates(const StepJob& job) {
  const std::vector<Bytes> memory = job.MemoryOf(0);
  std::vector<std::pair<std::string, int64_t>> beyond;
  for (size_t i = 0; i < memory.size(); ++i) {
    beyond.emplace_back(job.program(0)[i].name, memory[i].count - job.states()[0].total().count);
  }
  return beyond;
}

// In elements of 4 bytes: 48 of the image for conv, 128 of conv for norm, 128 of relu, 8 of pool
// for linear, 10 of the softmax. The sum of conv's gradients needs none of them.
TEST(NetworkMemory, OfATrainingStep) {
  const StepJob job = MakeNetworkJob(SmallNetwork(), {}).value();
  using NamedBytes = std::vector<std::pair<std::string, int64_t>>;
  const int64_t conv = 4 * (48 + 128);
  const int64_t relu = conv + 4 * 128;
  const int64_t pool = relu + 4 * 8;
  EXPECT_EQ(MemoryBeyondStates(job), (NamedBytes{{"a.conv #0", conv},
                                                 {"b.norm #0", conv},
                                                 {"b.relu #0", relu},
                                                 {"b.add #0", relu},
                                                 {"c.pool #0", pool},
                                                 {"c.linear #0", pool},
                                                 {"c.loss #0", pool + 4 * 10},
                                                 {"c.loss backward #0", pool + 4 * 10},
                                                 {"c.linear input gradient #0", pool},
                                                 {"c.linear weight gradient #0", pool},
                                                 {"c.pool backward #0", relu},
                                                 {"b.relu backward #0", relu},
                                                 {"b.norm backward #0", conv},
                                                 {"a.conv gradient sum #0", 4 * 48},
                                                 {"a.conv weight gradient #0", 4 * 48},
                                                 {"optimizer", 0}}));
}

// Only conv's output is used beyond the next computation: by the addition.
TEST(NetworkMemory, OfInference) {
  const StepJob job = MakeNetworkJob(SmallNetwork(), {.phase = NetworkPhase::kInference}).value();
  EXPECT_EQ(job.states()[0].weights, Bytes{4 * 330});
  EXPECT_EQ(job.states()[0].total(), Bytes{4 * 330});
  using NamedBytes = std::vector<std::pair<std::string, int64_t>>;
  EXPECT_EQ(MemoryBeyondStates(job), (NamedBytes{{"a.conv #0", 4 * 128},
                                                 {"b.norm #0", 4 * 128},
                                                 {"b.relu #0", 4 * 128},
                                                 {"b.add #0", 4 * 128},
                                                 {"c.pool #0", 0},
                                                 {"c.linear #0", 0}}));
}

// An image of 48 numbers, and another one at each step; the last one stays.
TEST(NetworkMemory, OfSampling) {
  NetworkBuilder b;
  const size_t image = b.Input("image", {3, 4, 4});
  b.Plain("loss", {b.Conv("conv", image, 3, {})}, LayerKind::kSquaredError);
  b.model().denoises = true;
  const Network network = MakeNetwork(std::move(b.model())).value();
  const StepJob job =
      MakeNetworkJob(network, {.phase = NetworkPhase::kInference, .steps = 2}).value();
  using NamedBytes = std::vector<std::pair<std::string, int64_t>>;
  const int64_t one = 4 * 48;
  EXPECT_EQ(
      MemoryBeyondStates(job),
      (NamedBytes{
          {"conv #0", one}, {"denoise #0", 2 * one}, {"conv #1", one}, {"denoise #1", 2 * one}}));
  // The noise until the loss's gradient, the noisy image until conv's, the prediction.
  const StepJob training = MakeNetworkJob(network, {}).value();
  EXPECT_EQ(MemoryBeyondStates(training), (NamedBytes{{"noise #0", one},
                                                      {"noisy image #0", 2 * one},
                                                      {"conv #0", 3 * one},
                                                      {"loss #0", 3 * one},
                                                      {"loss backward #0", 3 * one},
                                                      {"conv weight gradient #0", one},
                                                      {"optimizer", 0},
                                                      {"average of weights", 0}}));
}

// 330 parameters on 4 ranks: 83 each. Adam has two moments and, for weights of two bytes, a copy of
// them in four.
TEST(NetworkMemory, OfStates) {
  Network network = SmallNetwork();
  const auto states = [&](int64_t zero, OptimizerKind optimizer) {
    return StatesOfNetwork(network, {.data = 4, .zero_stage = zero, .optimizer = optimizer});
  };
  EXPECT_EQ(states(0, OptimizerKind::kSgd).weights, Bytes{4 * 330});
  EXPECT_EQ(states(0, OptimizerKind::kSgd).gradients, Bytes{4 * 330});
  EXPECT_EQ(states(0, OptimizerKind::kSgd).optimizer, Bytes{4 * 330});
  EXPECT_EQ(states(1, OptimizerKind::kAdam).gradients, Bytes{4 * 330});
  EXPECT_EQ(states(1, OptimizerKind::kAdam).optimizer, Bytes{2 * 4 * 83});
  EXPECT_EQ(states(2, OptimizerKind::kAdam).gradients, Bytes{4 * 83});
  EXPECT_EQ(states(2, OptimizerKind::kAdam).weights, Bytes{4 * 330});
  EXPECT_EQ(states(3, OptimizerKind::kAdam).weights, Bytes{4 * 83});
  network.model.weights = DType::kBFloat16;
  EXPECT_EQ(states(0, OptimizerKind::kAdam).weights, Bytes{2 * 330});
  EXPECT_EQ(states(0, OptimizerKind::kAdam).optimizer, Bytes{3 * 4 * 330});
  network.model.denoises = true;
  EXPECT_EQ(states(0, OptimizerKind::kAdam).optimizer, Bytes{4 * 4 * 330});
}

// At the loss exactly the values for backward are in use; at the end all are released.
TEST(NetworkMemory, OfPresets) {
  for (const auto& [presets, denoises] :
       {std::pair(CnnPresets(), false), std::pair(DiffusionPresets(), true)}) {
    for (const NetworkPreset& preset : presets) {
      NetworkModel model = preset.model();
      model.denoises = denoises;
      const Network network = MakeNetwork(std::move(model)).value();
      for (const int64_t zero : {0, 3}) {
        const StepJob job =
            MakeNetworkJob(network, {.data = 2, .micro_batches = 2, .zero_stage = zero}).value();
        const auto beyond = MemoryBeyondStates(job);
        const auto loss = std::ranges::find_if(
            beyond, [](const auto& row) { return row.first.ends_with("loss #0"); });
        ASSERT_NE(loss, beyond.end());
        if (zero == 0) {
          EXPECT_EQ(loss->second, NetworkCosts(network, 1, NetworkPhase::kTraining).Kept().count)
              << preset.name;
        }
        EXPECT_EQ(beyond.back().second, 0) << preset.name << ", ZeRO " << zero;
        for (const auto& [name, bytes] : beyond) EXPECT_GE(bytes, 0) << preset.name << name;
      }
      const StepJob inference =
          MakeNetworkJob(network, {.phase = NetworkPhase::kInference}).value();
      for (const auto& [name, bytes] : MemoryBeyondStates(inference)) {
        EXPECT_GE(bytes, 0) << preset.name << name;
      }
    }
  }
}

}  // namespace
}  // namespace etude
