#include "src/transform/layers/stage_split.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "src/transform/layers/training_step_testing.h"

namespace etude {
namespace {

using testing_layers::MakeTrainingStep;
using testing_layers::TrainingStep;

// Returns the places of the nodes with a name, in order of time: "0 1", and shares of less than 1
// in percent: "0:50".
std::string PlacesOf(const Trace& trace, const StageSplit& split, std::string_view name) {
  std::string text;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.name(node) != name) return;
    for (const PlaceShare& share : split.SharesOf(node)) {
      text += (text.empty() ? "" : " ") + std::to_string(share.place);
      if (share.share < 1) text += ":" + std::to_string(static_cast<int>(share.share * 100));
    }
  });
  return text;
}

std::string ErrorOf(const testing_layers::TrainingStepForm& form, size_t stages) {
  const Result<StageSplit> split = SplitStages(MakeTrainingStep(form), stages);
  return split ? "" : split.error().message;
}

TEST(StageSplit, LayersAreDividedEvenly) {
  const Trace trace = MakeTrainingStep({.layers = 5});
  const Result<StageSplit> split = SplitStages(trace, 3);
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(split->stack.layers, 5u);
  ASSERT_EQ(split->stages.size(), 3u);
  EXPECT_EQ(split->stages[1].first_layer, 2u);
  EXPECT_EQ(split->stages[2].first_layer, 4u);
  EXPECT_EQ(split->stages[2].layers, 1u);
  EXPECT_EQ(PlacesOf(trace, *split, "aten::linear"), "0 0 1 1 2");
  EXPECT_EQ(PlacesOf(trace, *split, "aten::mm"), "2 1 1 0 0");
  EXPECT_EQ(PlacesOf(trace, *split, "aten::_foreach_add_"), "0:40 1:40 2:20");
  EXPECT_EQ(split->divided, 1u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(split->stages[i].sent.size(), 1u);
    EXPECT_EQ(split->stages[i].sent.front().bytes.count, TrainingStep::kActivation);
    EXPECT_TRUE(split->stages[i].sent.front().has_gradient);
  }
  EXPECT_TRUE(split->stages[2].sent.empty());
  ASSERT_EQ(split->gradients.size(), 3u);
  EXPECT_EQ(split->gradients[0].size(), 2u);
  EXPECT_EQ(split->gradients[2].size(), 1u);
  EXPECT_EQ(split->gradients[2].front().bytes.count, TrainingStep::kWeight);
}

TEST(StageSplit, EndsBelongToTheFirstAndTheLastStage) {
  const Trace trace = MakeTrainingStep({.layers = 4, .has_ends = true});
  const Result<StageSplit> split = SplitStages(trace, 2);
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(PlacesOf(trace, *split, "aten::embedding"), "0");
  EXPECT_EQ(PlacesOf(trace, *split, "aten::embedding_dense_backward"), "0");
  EXPECT_EQ(PlacesOf(trace, *split, "aten::nll_loss"), "1");
  // The mask follows from no weights: each stage makes its own.
  EXPECT_EQ(PlacesOf(trace, *split, "aten::ones"), "0 1");
  EXPECT_EQ(split->copied, 1u);
  EXPECT_EQ(split->stages.front().sent.size(), 1u);
  std::map<StepPart, int> parts;
  ForEachNode(trace, [&](NodeId node) { ++parts[split->parts[node.index()]]; });
  EXPECT_EQ(parts[StepPart::kBefore], 2) << "the mark, and the release of gradients";
  EXPECT_EQ(parts[StepPart::kAfter], 1) << "the optimizer";
  EXPECT_EQ(parts[StepPart::kForward], 7);
}

// The recorded layers are the places 1 to 3, between those of the ends.
TEST(StageSplit, AddedLayersAreRecordedOnes) {
  using Segments = std::vector<std::vector<uint32_t>>;
  const Trace trace = MakeTrainingStep({.layers = 3, .has_ends = true});
  const Result<StageSplit> split = SplitStages(trace, 3, 8);
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(split->stages[0].segments, (Segments{{0, 1, 2, 3}}));
  EXPECT_EQ(split->stages[1].segments, (Segments{{1, 2, 3}}));
  EXPECT_EQ(split->stages[2].segments, (Segments{{1, 2}, {4}}));
  EXPECT_EQ(split->stages[2].first_layer, 6u);
  EXPECT_EQ(split->stages[1].sent.size(), 1u);
  EXPECT_EQ(PlacesOf(trace, *split, "aten::ones"), "0 1 2 3");
  const Result<StageSplit> fewer = SplitStages(trace, 2, 2);
  ASSERT_TRUE(fewer) << fewer.error().message;
  EXPECT_EQ(fewer->stages[0].segments, (Segments{{0, 1}}));
  EXPECT_EQ(fewer->stages[1].segments, (Segments{{2}, {4}}));
}

TEST(StageSplit, OneStageNeedsNoLayers) {
  const Trace trace = MakeTrainingStep({.layers = 1});
  const Result<StageSplit> split = SplitStages(trace, 1);
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(PlacesOf(trace, *split, "aten::linear"), "0");
  EXPECT_TRUE(split->stages.front().sent.empty());
}

TEST(StageSplit, RefusesWithTheReason) {
  const auto expect = [](const testing_layers::TrainingStepForm& form, size_t stages,
                         std::string_view told) {
    const std::string error = ErrorOf(form, stages);
    EXPECT_NE(error.find(told), std::string::npos) << error;
    EXPECT_NE(error.find("nearest possible"), std::string::npos) << error;
  };
  expect({.layers = 4}, 5, "found 4 layers for 5 stages");
  expect({.layers = 4}, 5, "--pp 4");
  expect({.layers = 1}, 2, "at least two equal layers");
  expect({.layers = 4, .is_alone = false}, 2, "'c10d::allreduce_' (node");
  expect({.layers = 4, .has_ends = true, .is_tied = true}, 2, "weights of the stages 1 and 2");
  EXPECT_NE(ErrorOf({.layers = 4, .passes = 2}, 2).find("found 2 backward passes"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.layers = 4, .has_sizes = false}, 2).find("without size or type"),
            std::string::npos);
}

}  // namespace
}  // namespace etude
