#include "src/transform/dimensions/tensor_parallel.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/transform/dimensions/tensor_step_testing.h"

namespace etude {
namespace {

using testing_dimensions::TensorStep;
using Tensor = TensorStep::Tensor;
using Shape = std::vector<int64_t>;

constexpr int64_t kMlpRows = 16;
constexpr int64_t kMlpWidth = 8;
constexpr int64_t kMlpHidden = 32;

// Nodes of a step that tests look at.
struct MlpNodes {
  NodeId up, down, sum, gradient, gradient_sum, norm, limit, update;
};

Tensor Matrix(const std::string& memory, int64_t rows, int64_t columns) {
  return TensorStep::Whole(memory, {rows, columns});
}

// Writes a step of x + down(activation(up(x))) with biases, whose input needs a gradient.
// `activation`: an operator that takes one tensor. `has_norm`: of the first weight's gradient.
Trace MakeMlp(MlpNodes& nodes, const std::string& activation = "aten::relu",
              bool has_norm = false) {
  TensorStep step;
  const Tensor x = Matrix("x", kMlpRows, kMlpWidth);
  const Tensor up = Matrix("up", kMlpHidden, kMlpWidth);
  const Tensor down = Matrix("down", kMlpWidth, kMlpHidden);
  const Tensor up_bias = TensorStep::Whole("up bias", {kMlpHidden});
  const Tensor down_bias = TensorStep::Whole("down bias", {kMlpWidth});
  const Tensor h = Matrix("h", kMlpRows, kMlpHidden);
  const Tensor a = Matrix("a", kMlpRows, kMlpHidden);
  const Tensor y = Matrix("y", kMlpRows, kMlpWidth);
  nodes.up = step.Op("aten::addmm", {up_bias, x, TensorStep::Turned(up)}, {h});
  step.Op(activation, {h}, {a});
  nodes.down = step.Op("aten::addmm", {down_bias, a, TensorStep::Turned(down)}, {y});
  nodes.sum = step.Op("aten::add", {x, y}, {Matrix("out", kMlpRows, kMlpWidth)}, {1});
  const Tensor g = Matrix("g", kMlpRows, kMlpWidth);
  const Tensor ga = Matrix("ga", kMlpRows, kMlpHidden);
  const Tensor gh = Matrix("gh", kMlpRows, kMlpHidden);
  const Tensor gx = Matrix("gx", kMlpRows, kMlpWidth);
  const Tensor up_gradient = Matrix("up gradient", kMlpHidden, kMlpWidth);
  const Tensor down_gradient = Matrix("down gradient", kMlpWidth, kMlpHidden);
  step.Begin("autograd::engine::evaluate_function: SomeBackward0");
  step.Op("aten::ones_like", {Matrix("out", kMlpRows, kMlpWidth)}, {g});
  step.Op("aten::mm", {TensorStep::Turned(g), a}, {down_gradient});
  step.Keep(down_gradient);
  step.OpOver("aten::sum", {g}, {TensorStep::Whole("down bias gradient", {1, kMlpWidth})}, {0});
  step.Op("aten::mm", {g, down}, {ga});
  step.Op("aten::threshold_backward", {ga, h}, {gh}, {0});
  step.Op("aten::mm", {TensorStep::Turned(gh), x}, {up_gradient});
  step.Keep(up_gradient);
  nodes.gradient = step.Op("aten::mm", {gh, up}, {gx});
  nodes.gradient_sum = step.Op("aten::add", {g, gx}, {Matrix("sum", kMlpRows, kMlpWidth)}, {1});
  step.Keep(Matrix("sum", kMlpRows, kMlpWidth));
  step.End();
  if (has_norm) {
    const Tensor norm = TensorStep::Whole("norm", {});
    nodes.norm = step.Op("aten::linalg_vector_norm", {up_gradient}, {norm}, {2});
    nodes.limit = step.Op("aten::add", {norm}, {TensorStep::Whole("limit", {})}, {1, 1});
  }
  nodes.update = step.Op("aten::add_", {up, up_gradient}, {up}, {1});
  step.Op("aten::add_", {down, down_gradient}, {down}, {1});
  return step.Finish();
}

Shape ShapeOfInput(const Trace& trace, NodeId node, size_t index) {
  const auto shape = trace.ints(trace.tensor(trace.inputs(node)[index].as_tensor()).shape);
  return {shape.begin(), shape.end()};
}
Shape StridesOfInput(const Trace& trace, NodeId node, size_t index) {
  const auto strides = trace.ints(trace.tensor(trace.inputs(node)[index].as_tensor()).strides);
  return {strides.begin(), strides.end()};
}

TEST(TensorParallel, AnMlpIsDividedByColumnsAndRows) {
  MlpNodes nodes;
  const Trace trace = MakeMlp(nodes);
  const auto step = DivideAmongTensorRanks(trace, 2, {});
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(step->weights, 2u);
  EXPECT_EQ(step->divided, 2u);
  EXPECT_EQ(step->divided_share, 1);
  EXPECT_EQ(step->dimensions, (std::map<int64_t, uint64_t>{{kMlpHidden, 1}}));
  // The bias of the first product and the result are divided, the input is whole.
  EXPECT_EQ(ShapeOfInput(step->trace, nodes.up, 0), (Shape{kMlpHidden / 2}));
  EXPECT_EQ(ShapeOfInput(step->trace, nodes.up, 1), (Shape{kMlpRows, kMlpWidth}));
  EXPECT_EQ(ShapeOfInput(step->trace, nodes.up, 2), (Shape{kMlpWidth, kMlpHidden / 2}));
  EXPECT_EQ(ShapeOfInput(step->trace, nodes.down, 0), (Shape{kMlpWidth}));
  EXPECT_EQ(ShapeOfInput(step->trace, nodes.down, 1), (Shape{kMlpRows, kMlpHidden / 2}));
  EXPECT_EQ(StridesOfInput(step->trace, nodes.down, 1), (Shape{kMlpHidden / 2, 1}));
  EXPECT_EQ(StridesOfInput(step->trace, nodes.down, 2), (Shape{1, kMlpHidden / 2}));
  EXPECT_EQ(ShapeOfInput(step->trace, nodes.update, 1), (Shape{kMlpHidden / 2, kMlpWidth}));
  // One sum in each pass: of the results, and of the input's gradients.
  ASSERT_EQ(step->reductions.size(), 2u);
  const TensorReduction& forward = step->reductions.front();
  EXPECT_EQ(forward.made, nodes.down);
  EXPECT_EQ(forward.read, nodes.sum);
  EXPECT_EQ(forward.bytes.count, kMlpRows * kMlpWidth * 4);
  EXPECT_FALSE(forward.in_backward);
  const TensorReduction& backward = step->reductions.back();
  EXPECT_EQ(backward.made, nodes.gradient);
  EXPECT_EQ(backward.read, nodes.gradient_sum);
  EXPECT_EQ(backward.bytes.count, kMlpRows * kMlpWidth * 4);
  EXPECT_TRUE(backward.in_backward);
}

TEST(TensorParallel, NormsOfGradientsAreReduced) {
  MlpNodes nodes;
  const auto step = DivideAmongTensorRanks(MakeMlp(nodes, "aten::relu", true), 2, {});
  ASSERT_TRUE(step) << step.error().message;
  ASSERT_EQ(step->reductions.size(), 3u);
  EXPECT_EQ(step->reductions.back().made, nodes.norm);
  EXPECT_EQ(step->reductions.back().read, nodes.limit);
  EXPECT_EQ(step->reductions.back().bytes.count, 4);
  EXPECT_FALSE(step->reductions.back().in_backward);
}

TEST(TensorParallel, MoreLayersHaveMoreAllReduces) {
  MlpNodes nodes;
  const Trace trace = MakeMlp(nodes);
  const auto step = DivideAmongTensorRanks(trace, 2, {});
  ASSERT_TRUE(step);
  std::vector<NodeId> origins;
  ForEachNode(trace, [&](NodeId node) { origins.push_back(node); });
  const auto same = RepeatReductions(step->reductions, step->trace, origins);
  ASSERT_EQ(same.size(), 2u);
  EXPECT_EQ(same.front().made, nodes.down);
  EXPECT_EQ(same.front().read, nodes.sum);
  // Where the reader is left out, the next operator reads the sum.
  origins[nodes.sum.index()] = nodes.up;
  const auto next = RepeatReductions(step->reductions, step->trace, origins);
  ASSERT_EQ(next.size(), 2u);
  EXPECT_EQ(next.front().read, nodes.sum);
}

TEST(TensorParallel, AllReducesStandBetweenTheirOperators) {
  MlpNodes nodes;
  const Trace trace = MakeMlp(nodes);
  const auto step = DivideAmongTensorRanks(trace, 4, {});
  ASSERT_TRUE(step);
  const auto edited = AddTensorReductions(step->trace, step->reductions, 4, {});
  ASSERT_TRUE(edited) << edited.error().message;
  ASSERT_EQ(edited->node_count(), trace.node_count() + 2);
  EXPECT_EQ(edited->info().world_size, 4);
  ASSERT_EQ(edited->comms().size(), 2u);
  const auto& [node, comm] = edited->comms().front();
  EXPECT_EQ(comm.type, CollectiveType::kAllReduce);
  EXPECT_EQ(comm.bytes->count, kMlpRows * kMlpWidth * 4);
  EXPECT_EQ(comm.group_size, 4);
  EXPECT_EQ(edited->deps(node).front(), nodes.down);
  EXPECT_EQ(edited->deps(nodes.sum).back(), node);
}

TEST(TensorParallel, TheNearestNumberOfRanksIsNamed) {
  MlpNodes nodes;
  const Trace trace = MakeMlp(nodes);
  const auto step = DivideAmongTensorRanks(trace, 5, {});
  ASSERT_FALSE(step);
  EXPECT_NE(step.error().message.find("found a dimension of 32"), std::string::npos)
      << step.error().message;
  EXPECT_NE(step.error().message.find("nearest possible: --tp 4, --tp 8"), std::string::npos)
      << step.error().message;
}

TEST(TensorParallel, UnknownOperatorsAreRefused) {
  MlpNodes nodes;
  const auto step = DivideAmongTensorRanks(MakeMlp(nodes, "mine::activation"), 2, {});
  ASSERT_FALSE(step);
  EXPECT_NE(step.error().message.find("found 'mine::activation' (node 2) on a dimension of 32"),
            std::string::npos)
      << step.error().message;
}

TEST(TensorParallel, OperatorsThatNeedTheWholeDimensionAreRefused) {
  MlpNodes nodes;
  const auto step = DivideAmongTensorRanks(MakeMlp(nodes, "aten::triu"), 2, {});
  ASSERT_FALSE(step);
  EXPECT_NE(step.error().message.find("'aten::triu' (node 2) needs the only ones whole"),
            std::string::npos)
      << step.error().message;
}

}  // namespace
}  // namespace etude
