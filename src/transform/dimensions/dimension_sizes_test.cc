#include "src/transform/dimensions/dimension_sizes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/transform/dimensions/tensor_parallel.h"
#include "src/transform/dimensions/tensor_step_testing.h"

namespace etude {
namespace {

using testing_dimensions::TensorStep;
using Tensor = TensorStep::Tensor;
using Shape = std::vector<int64_t>;

constexpr int64_t kSamples = 2;
constexpr int64_t kTokens = 6;
constexpr int64_t kHeadCount = 4;
constexpr int64_t kHeadDepth = 8;
constexpr int64_t kAttentionWidth = kHeadCount * kHeadDepth;

// Nodes of a step that tests look at.
struct AttentionNodes {
  NodeId parts, attention, result, shift, rest;
};

// Writes the forward pass of an attention whose queries, keys and values are thirds of the result
// of one weight, the addition of its input (`adds`), an operator on all tokens but the first, and
// an update of the weights.
Trace MakeAttention(AttentionNodes& nodes, bool adds = true) {
  TensorStep step;
  const Tensor x = TensorStep::Whole("x", {kSamples, kTokens, kAttentionWidth});
  const Tensor weight = TensorStep::Whole("weight", {3 * kAttentionWidth, kAttentionWidth});
  const Tensor out_weight = TensorStep::Whole("out weight", {kAttentionWidth, kAttentionWidth});
  const Tensor parts = TensorStep::Whole("parts", {kSamples, kTokens, 3 * kAttentionWidth});
  nodes.parts = step.Op("aten::linear", {x, weight}, {parts});
  std::vector<Tensor> thirds;
  for (int64_t i = 0; i < 3; ++i) {
    thirds.push_back(
        {.memory = "parts",
         .shape = {kSamples, kHeadCount, kTokens, kHeadDepth},
         .strides = {kTokens * 3 * kAttentionWidth, kHeadDepth, 3 * kAttentionWidth, 1},
         .offset = i * kAttentionWidth});
    step.Op("aten::view", {parts}, {thirds.back()});
  }
  const Tensor turned = {.memory = "o",
                         .shape = {kSamples, kHeadCount, kTokens, kHeadDepth},
                         .strides = {kTokens * kAttentionWidth, kHeadDepth, kAttentionWidth, 1}};
  nodes.attention = step.Op("aten::_scaled_dot_product_flash_attention_for_cpu", thirds,
                            {turned, TensorStep::Whole("sums", {kSamples, kHeadCount, kTokens})});
  const Tensor joined = TensorStep::Whole("o", {kSamples, kTokens, kAttentionWidth});
  step.Op("aten::view", {turned}, {joined});
  const Tensor y = TensorStep::Whole("y", {kSamples, kTokens, kAttentionWidth});
  nodes.result = step.Op("aten::linear", {joined, out_weight}, {y});
  const Tensor z = TensorStep::Whole("z", {kSamples, kTokens, kAttentionWidth});
  if (adds) {
    step.Op("aten::add", {x, y}, {z});
  } else {
    step.Op("aten::relu", {y}, {z});
  }
  const Tensor rest = {.memory = "z",
                       .shape = {kSamples, kTokens - 1, kAttentionWidth},
                       .strides = {kTokens * kAttentionWidth, kAttentionWidth, 1},
                       .offset = kAttentionWidth};
  nodes.shift = step.Op("aten::slice", {z}, {rest}, {1, 1, kTokens});
  nodes.rest = step.Op("aten::relu", {rest},
                       {TensorStep::Whole("rest", {kSamples, kTokens - 1, kAttentionWidth})});
  step.Op("aten::add_", {weight, weight}, {weight});
  step.Op("aten::add_", {out_weight, out_weight}, {out_weight});
  return step.Finish();
}

Shape ShapeOf(const Trace& trace, const Value& value) {
  const auto shape = trace.ints(trace.tensor(value.as_tensor()).shape);
  return {shape.begin(), shape.end()};
}
Shape StridesOf(const Trace& trace, const Value& value) {
  const auto strides = trace.ints(trace.tensor(value.as_tensor()).strides);
  return {strides.begin(), strides.end()};
}

TEST(DimensionSizes, HeadsAreDividedInViewsOfOneProduct) {
  AttentionNodes nodes;
  const auto step = DivideAmongTensorRanks(MakeAttention(nodes), 2, {});
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(step->dimensions, (std::map<int64_t, uint64_t>{{kHeadCount, 1}}));
  EXPECT_EQ(step->divided, 2u);
  constexpr int64_t kPart = kAttentionWidth / 2;
  const Trace& trace = step->trace;
  EXPECT_EQ(ShapeOf(trace, trace.inputs(nodes.parts)[1]), (Shape{3 * kPart, kAttentionWidth}));
  const Value& values = trace.inputs(nodes.attention)[2];
  EXPECT_EQ(ShapeOf(trace, values), (Shape{kSamples, kHeadCount / 2, kTokens, kHeadDepth}));
  EXPECT_EQ(StridesOf(trace, values), (Shape{kTokens * 3 * kPart, kHeadDepth, 3 * kPart, 1}));
  EXPECT_EQ(trace.tensor(values.as_tensor()).offset, 2 * kPart);
  EXPECT_EQ(ShapeOf(trace, trace.inputs(nodes.result)[1]), (Shape{kAttentionWidth, kPart}));
  ASSERT_EQ(step->reductions.size(), 1u);
  EXPECT_EQ(step->reductions.front().made, nodes.result);
  EXPECT_EQ(step->reductions.front().bytes.count, kSamples * kTokens * kAttentionWidth * 4);
}

TEST(DimensionSizes, BatchAndLengthAreTold) {
  AttentionNodes nodes;
  const Trace recorded = MakeAttention(nodes);
  const auto edit = WithDimensionSizes(recorded, {.batch = 5, .sequence = 9}, {});
  ASSERT_TRUE(edit) << edit.error().message;
  const Trace& trace = edit->trace;
  EXPECT_EQ(ShapeOf(trace, trace.inputs(nodes.parts)[0]), (Shape{5, 9, kAttentionWidth}));
  EXPECT_EQ(ShapeOf(trace, trace.inputs(nodes.attention)[1]),
            (Shape{5, kHeadCount, 9, kHeadDepth}));
  EXPECT_EQ(ShapeOf(trace, trace.outputs(nodes.rest)[0]), (Shape{5, 8, kAttentionWidth}));
  const auto shift = trace.inputs(nodes.shift);
  EXPECT_EQ(shift[2].as_int(), 1);
  EXPECT_EQ(shift[3].as_int(), 9);
  EXPECT_EQ(trace.tensor(trace.outputs(nodes.shift)[0].as_tensor()).offset, kAttentionWidth);
  ASSERT_EQ(edit->dimensions.size(), 2u);
  EXPECT_EQ(edit->dimensions[0].before, kSamples);
  EXPECT_EQ(edit->dimensions[1].before, kTokens);
}

TEST(DimensionSizes, HeadsKeepTheHiddenSize) {
  AttentionNodes nodes;
  const Trace recorded = MakeAttention(nodes);
  const auto more = WithDimensionSizes(recorded, {.heads = 2 * kHeadCount}, {});
  ASSERT_TRUE(more) << more.error().message;
  const Trace& trace = more->trace;
  EXPECT_EQ(ShapeOf(trace, trace.inputs(nodes.attention)[0]),
            (Shape{kSamples, 2 * kHeadCount, kTokens, kHeadDepth / 2}));
  const auto wider = WithDimensionSizes(recorded, {.hidden = 2 * kAttentionWidth}, {});
  ASSERT_TRUE(wider) << wider.error().message;
  EXPECT_EQ(ShapeOf(wider->trace, wider->trace.inputs(nodes.parts)[1]),
            (Shape{6 * kAttentionWidth, 2 * kAttentionWidth}));
  EXPECT_EQ(ShapeOf(wider->trace, wider->trace.inputs(nodes.attention)[0]),
            (Shape{kSamples, kHeadCount, kTokens, 2 * kHeadDepth}));
}

// Without the addition, the result may have a size of its own.
TEST(DimensionSizes, OtherDimensionsOfTheHiddenSizeAreRefused) {
  AttentionNodes nodes;
  const auto edit = WithDimensionSizes(MakeAttention(nodes, /*adds=*/false), {.hidden = 64}, {});
  ASSERT_FALSE(edit);
  EXPECT_NE(edit.error().message.find("--hidden: found several dimensions of 32 in weights"),
            std::string::npos)
      << edit.error().message;
}

TEST(DimensionSizes, MissingDimensionsAreRefused) {
  AttentionNodes nodes;
  const auto edit = WithDimensionSizes(MakeAttention(nodes), {.ffn = 8}, {});
  ASSERT_FALSE(edit);
  EXPECT_NE(edit.error().message.find("--ffn: found no dimension with this meaning"),
            std::string::npos)
      << edit.error().message;
}

}  // namespace
}  // namespace etude
