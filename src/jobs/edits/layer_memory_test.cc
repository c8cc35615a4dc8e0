#include "src/jobs/edits/layer_memory.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/transform/layers/training_step_testing.h"

namespace etude {
namespace {

using testing_layers::MakeTrainingStep;
using testing_layers::TrainingStepForm;

constexpr int64_t kActivations = testing_layers::TrainingStep::kActivation;
constexpr int64_t kWeights = testing_layers::TrainingStep::kWeight;

Trace StepOf(int layers, bool has_ends, int passes = 1) {
  return MakeTrainingStep(
      {.layers = layers, .has_ends = has_ends, .passes = passes, .has_lifetimes = true});
}

TensorPeaks RecordedPeaks(Trace trace) {
  std::vector<Trace> traces;
  traces.push_back(std::move(trace));
  return TensorPeaksOf(traces);
}

std::vector<TensorPeaks> StagePeaks(const Trace& trace, const PipelinePlan& plan,
                                    std::optional<size_t> layers = {}) {
  const Result<StageSplit> split = SplitStages(trace, static_cast<size_t>(plan.stages), layers);
  EXPECT_TRUE(split) << split.error().message;
  const auto peaks = MemoryOfStages(trace, *split, plan);
  EXPECT_TRUE(peaks.has_value());
  return peaks.value_or(std::vector<TensorPeaks>());
}

// Memory with other layers is that of a recording with as many.
TEST(LayerMemory, OtherLayersAreThoseOfTheOtherModel) {
  for (const bool has_ends : {false, true}) {
    for (const int passes : {1, 2}) {
      for (const int recorded : {2, 3, 5}) {
        const Trace trace = StepOf(recorded, has_ends, passes);
        const Result<LayerStack> stack = FindLayerStack(trace);
        ASSERT_TRUE(stack) << stack.error().message;
        for (const int wanted : {1, 2, 3, 4, 9}) {
          const std::string what = fmt::format("{} layers, {} wanted, ends {}, {} passes", recorded,
                                               wanted, has_ends, passes);
          const auto peaks = MemoryOfLayers(trace, *stack, static_cast<size_t>(wanted));
          ASSERT_TRUE(peaks) << what;
          const TensorPeaks expected = RecordedPeaks(StepOf(wanted, has_ends, passes));
          ASSERT_FALSE(expected.empty());
          EXPECT_EQ(*peaks, expected) << what;
        }
      }
    }
  }
}

// Two stages of two layers each. A stage keeps one activation for each micro-batch in flight, and
// the last one also that which it received.
TEST(LayerMemory, StagesKeepTheActivationsInFlight) {
  const Trace trace = StepOf(4, /*has_ends=*/false);
  // Its weights, and the activations or gradient that the recording has from elsewhere.
  const int64_t earlier = 2 * kWeights + kActivations;
  const int64_t gradients = 2 * kWeights;
  const auto expect = [&](PipelineSchedule schedule, int64_t first, int64_t last) {
    const auto peaks = StagePeaks(trace, {.schedule = schedule, .stages = 2, .micro_batches = 4});
    ASSERT_EQ(peaks.size(), 2u);
    EXPECT_EQ(peaks[0].at("").count, first);
    EXPECT_EQ(peaks[1].at("").count, last);
  };
  // The first stage peaks in the backward pass of its second layer: with the received gradient, the
  // one that it makes, and a gradient of weights.
  const int64_t in_backward = 2 * kActivations + kWeights;
  // In 1f1b, two micro-batches are in flight on the first stage and one on the last, which peaks in
  // the first layer's backward pass of later micro-batches.
  expect(PipelineSchedule::k1F1B, earlier + gradients + 2 * kActivations + in_backward,
         earlier + gradients + 2 * kActivations + kActivations + kWeights);
  // In gpipe, all four are in flight. The first stage has its gradients and one activation less in
  // the second backward pass. The last one has two activations for each.
  expect(PipelineSchedule::kGpipe, earlier + 4 * kActivations + in_backward,
         earlier + 8 * kActivations + 2 * kActivations);
}

TEST(LayerMemory, OneStageIsTheRecordedStep) {
  for (const bool has_ends : {false, true}) {
    const Trace trace = StepOf(4, has_ends);
    const auto peaks = StagePeaks(trace, {.stages = 1, .micro_batches = 1});
    ASSERT_EQ(peaks.size(), 1u);
    EXPECT_EQ(peaks[0], RecordedPeaks(StepOf(4, has_ends)));
  }
}

// Stages of a model with added layers are those of a recording with as many.
TEST(LayerMemory, StagesOfAddedLayersAreThoseOfTheOtherModel) {
  for (const bool has_ends : {false, true}) {
    for (const auto schedule : {PipelineSchedule::kGpipe, PipelineSchedule::k1F1B}) {
      for (const int64_t stages : {1, 2, 3}) {
        for (const int layers : {3, 4, 7, 12}) {
          const PipelinePlan plan{.schedule = schedule, .stages = stages, .micro_batches = 5};
          EXPECT_EQ(StagePeaks(StepOf(4, has_ends), plan, static_cast<size_t>(layers)),
                    StagePeaks(StepOf(layers, has_ends), plan))
              << layers << " on " << stages << " ends " << has_ends;
        }
      }
    }
  }
}

}  // namespace
}  // namespace etude
