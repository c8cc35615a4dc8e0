#include "src/transform/operators/operator_cost.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using Shape = std::vector<int64_t>;

class CostSketch {
 public:
  Value Tensor(const Shape& shape, uint64_t storage = 0) {
    const uint64_t tensor = ++tensors_;
    return Value::Tensor(builder.Intern("Tensor(float)"),
                         builder.InternTensor({.tensor = tensor,
                                               .storage = storage != 0 ? storage : 1000 + tensor,
                                               .element_bytes = 4,
                                               .shape = builder.InternInts(shape)}));
  }
  Value Flag(bool value) { return Value::Bool(builder.Intern("Bool"), value); }

  NodeId Op(std::string_view name, const std::vector<Value>& in, const std::vector<Value>& out,
            NodeId parent = NodeId()) {
    NodeRow row;
    row.source_id = builder.node_count();
    row.kind = NodeKind::kOperator;
    row.place = Place::kHost;
    row.name = builder.Intern(name);
    row.inputs = builder.InternValues(in);
    row.outputs = builder.InternValues(out);
    if (parent) row.parent = parent.value();
    return builder.AddNode(row);
  }
  std::vector<std::optional<OperatorCost>> Costs() {
    return OperatorCosts(builder.Finish().value());
  }

  TraceBuilder builder;

 private:
  uint64_t tensors_ = 0;
};

OperatorCost CostOf(std::string_view name, const std::vector<Shape>& in,
                    const std::vector<Shape>& out) {
  CostSketch sketch;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  for (const Shape& shape : in) inputs.push_back(sketch.Tensor(shape));
  for (const Shape& shape : out) outputs.push_back(sketch.Tensor(shape));
  sketch.Op(name, inputs, outputs);
  return sketch.Costs()[0].value();
}

TEST(OperatorCost, MatrixProducts) {
  EXPECT_EQ(CostOf("aten::mm", {{2, 3}, {3, 5}}, {{2, 5}}).ops, 2u * 2 * 3 * 5);
  EXPECT_EQ(CostOf("aten::mm", {{2, 3}, {3, 5}}, {{2, 5}}).bytes, 4u * (6 + 15 + 10));
  EXPECT_EQ(CostOf("aten::addmm", {{5}, {2, 3}, {3, 5}}, {{2, 5}}).ops, 2u * 2 * 3 * 5);
  EXPECT_EQ(CostOf("aten::bmm", {{7, 2, 3}, {7, 3, 5}}, {{7, 2, 5}}).ops, 2u * 7 * 2 * 3 * 5);
  EXPECT_EQ(CostOf("aten::baddbmm", {{7, 2, 5}, {7, 2, 3}, {7, 3, 5}}, {{7, 2, 5}}).ops,
            2u * 7 * 2 * 3 * 5);
  EXPECT_EQ(CostOf("aten::linear", {{4, 2, 3}, {5, 3}, {5}}, {{4, 2, 5}}).ops, 2u * 4 * 2 * 3 * 5);
}

TEST(OperatorCost, Convolutions) {
  const Shape input = {2, 3, 8, 8};
  const Shape weight = {6, 3, 3, 3};
  const Shape out = {2, 6, 6, 6};
  const uint64_t forward = 2u * (2 * 6 * 6 * 6) * (3 * 3 * 3);
  EXPECT_EQ(CostOf("aten::cudnn_convolution", {input, weight}, {out}).ops, forward);
  EXPECT_EQ(CostOf("aten::conv2d", {input, {6, 1, 3, 3}}, {out}).ops,
            2u * (2 * 6 * 6 * 6) * (1 * 3 * 3))
      << "three groups";
  EXPECT_EQ(CostOf("aten::convolution_backward", {out, input, weight}, {input, weight}).ops,
            2 * forward);
  EXPECT_EQ(CostOf("aten::convolution_backward", {out, input, weight}, {weight}).ops, forward);
  CostSketch sketch;
  sketch.Op("aten::convolution",
            {sketch.Tensor({2, 6, 6, 6}), sketch.Tensor({6, 3, 3, 3}), sketch.Flag(true)},
            {sketch.Tensor({2, 3, 8, 8})});
  EXPECT_EQ(sketch.Costs()[0]->ops, forward) << "transposed: the same the other way round";
}

TEST(OperatorCost, Attention) {
  const Shape q = {2, 4, 16, 8};
  const Shape k = {2, 4, 32, 8};
  const uint64_t product = 2u * 2 * 4 * 16 * 32 * 8;
  EXPECT_EQ(CostOf("aten::_scaled_dot_product_flash_attention", {q, k, k}, {q}).ops, 2 * product);
  EXPECT_EQ(
      CostOf("aten::_scaled_dot_product_flash_attention_backward", {q, q, k, k}, {q, k, k}).ops,
      5 * product);
  EXPECT_EQ(CostOf("aten::_flash_attention_forward", {{2, 16, 4, 8}, {2, 32, 4, 8}, {2, 32, 4, 8}},
                   {{2, 16, 4, 8}})
                .ops,
            2 * product);
}

TEST(OperatorCost, AllOthersCountWhatTheyPutOut) {
  EXPECT_EQ(CostOf("aten::add", {{2, 3}, {3}}, {{2, 3}}).ops, 6u);
  EXPECT_EQ(CostOf("aten::add", {{2, 3}, {3}}, {{2, 3}}).bytes, 4u * (6 + 3 + 6));
  EXPECT_EQ(CostOf("aten::empty", {}, {{1000}}).bytes, 0u);
}

TEST(OperatorCost, LookupsReadWhatTheyNeed) {
  EXPECT_EQ(CostOf("aten::embedding", {{1000, 8}, {5}}, {{5, 8}}).bytes, 4u * (40 + 5 + 40));
  EXPECT_EQ(CostOf("aten::_embedding_bag", {{1000, 8}, {20}, {5}}, {{5, 8}}).bytes,
            4u * (20 * 8 + 20 + 5 + 40))
      << "20 rows are read";
}

TEST(OperatorCost, ViewsCostNothing) {
  CostSketch sketch;
  sketch.Op("aten::t", {sketch.Tensor({2, 3}, 9)}, {sketch.Tensor({3, 2}, 9)});
  EXPECT_EQ(sketch.Costs()[0]->bytes, 0u);
}

TEST(OperatorCost, WorkCountsOnce) {
  CostSketch sketch;
  const Value a = sketch.Tensor({2, 3});
  const Value b = sketch.Tensor({3, 5});
  const Value c = sketch.Tensor({2, 5});
  const NodeId linear = sketch.Op("aten::linear", {a, b}, {c});
  const NodeId addmm = sketch.Op("aten::mm", {a, b}, {c}, linear);
  sketch.Op("aten::copy_", {c, c}, {c}, addmm);
  const NodeId relu = sketch.Op("aten::relu", {a}, {a});
  sketch.Op("aten::clamp_min", {a}, {a}, relu);
  const auto costs = sketch.Costs();
  EXPECT_TRUE(costs[0]->done_below);
  EXPECT_FALSE(costs[1]->done_below) << "a formula stands for itself";
  EXPECT_FALSE(costs[2]->done_below);
  EXPECT_TRUE(costs[3]->done_below);
  EXPECT_FALSE(costs[4]->done_below);
}

TEST(OperatorCost, AbsurdShapesHaveNone) {
  CostSketch sketch;
  sketch.Op("aten::mm", {sketch.Tensor({INT64_MAX, 4}), sketch.Tensor({4, INT64_MAX})},
            {sketch.Tensor({INT64_MAX, INT64_MAX})});
  sketch.Op("aten::add", {sketch.Tensor({-1, 4})}, {sketch.Tensor({-1, 4})});
  const auto costs = sketch.Costs();
  EXPECT_FALSE(costs[0].has_value());
  EXPECT_FALSE(costs[1].has_value());
}

TEST(OperatorCost, WorkCountsOnceWhereItIsDone) {
  CostSketch sketch;
  const Value a = sketch.Tensor({2, 3});
  const Value b = sketch.Tensor({3, 5});
  const Value c = sketch.Tensor({2, 5});
  const NodeId matmul = sketch.Op("aten::matmul", {a, b}, {c});
  sketch.Op("aten::mm", {a, b}, {c}, matmul);
  sketch.Op("aten::relu", {c}, {sketch.Tensor({2, 5})});
  sketch.Op("aten::neg", {}, {});
  const Work work = WorkOf(sketch.builder.Finish().value());
  EXPECT_EQ(work.flop, 2 * 2 * 3 * 5 + 2 * 5);
  EXPECT_EQ(work.bytes, 4 * (6 + 15 + 10) + 4 * (10 + 10));
  EXPECT_EQ(work.without_shapes, 1);
}

TEST(OperatorCost, WorkCountsByTheWeightOfItsNode) {
  CostSketch sketch;
  const Value a = sketch.Tensor({2, 3});
  sketch.Op("aten::relu", {a}, {a});
  sketch.Op("aten::relu", {a}, {a});
  const std::vector<double> weights = {0.25, 0};
  EXPECT_EQ(WorkOf(sketch.builder.Finish().value(), weights).flop, 1.5);
}

}  // namespace
}  // namespace etude
