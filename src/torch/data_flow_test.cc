#include "src/analysis/data_flow.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "src/analysis/recorded_step.h"
#include "src/formats/et_json_reader.h"
#include "src/formats/test_support.h"
#include "src/torch/outside_values.h"
#include "src/torch/replay_plan.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

// Addresses from here on hold integers.
constexpr int kInteger = 500;

// Writes host traces of a made-up step of operators on tensors of four elements.
class MadeUpStep {
 public:
  // One operator below `parent`, with tensors named by the address of their memory.
  uint64_t Op(const std::string& schema, const std::vector<int>& inputs,
              const std::vector<int>& outputs, uint64_t parent = 1) {
    const uint64_t id = next_id_++;
    nodes_ += ",{\"id\":" + std::to_string(id) + ",\"name\":\"" +
              schema.substr(0, schema.find('(')) + "\",\"ctrl_deps\":" + std::to_string(parent) +
              ",\"inputs\":" + Values(inputs) + ",\"outputs\":" + Values(outputs) +
              ",\"attrs\":[{\"name\":\"scope\",\"type\":\"uint64\",\"value\":0},"
              "{\"name\":\"op_schema\",\"type\":\"string\",\"value\":\"" +
              schema + "\"}]}";
    return id;
  }
  uint64_t Add(int a, int b, int out, uint64_t parent = 1) {
    return Op("aten::add.Tensor(Tensor self, Tensor other) -> Tensor", {a, b}, {out}, parent);
  }

  // A label: a node without a schema.
  uint64_t Label(const std::string& name, const std::vector<int>& inputs = {},
                 uint64_t parent = 1) {
    const uint64_t id = next_id_++;
    nodes_ += ",{\"id\":" + std::to_string(id) + ",\"name\":\"" + name +
              "\",\"ctrl_deps\":" + std::to_string(parent) + ",\"inputs\":" + Values(inputs) +
              ",\"outputs\":" + Values({}) +
              ",\"attrs\":[{\"name\":\"scope\",\"type\":\"uint64\",\"value\":0}]}";
    return id;
  }
  // An accumulation of the gradient `tensor`, by the operator `schema`.
  uint64_t Accumulate(int tensor, const std::string& schema, const std::vector<int>& inputs,
                      int out) {
    const uint64_t label = Label("torch::autograd::AccumulateGrad", {tensor});
    return Op(schema, inputs, {out}, label);
  }

  Trace Read() const {
    const std::string text =
        R"({"schema":"1.1.1-chakra.0.0.4","pid":1,"time":"","start_ts":0,"nodes":[)"
        R"({"id":1,"name":"[pytorch|profiler|execution_trace|process]","ctrl_deps":1})" +
        nodes_ + R"(],"finish_ts":1})";
    return testing_support::ReadWith(MakeEtJsonReader, text).value();
  }

 private:
  static std::string Values(const std::vector<int>& tensors) {
    std::string values;
    std::string shapes;
    std::string types;
    for (const int tensor : tensors) {
      const std::string comma = values.empty() ? "" : ",";
      values += comma + "[" + std::to_string(tensor + 1000) + "," + std::to_string(tensor) +
                (tensor < kInteger ? ",0,4,4,\"cpu\"]" : ",0,4,8,\"cpu\"]");
      shapes += comma + "[4]";
      types += comma + (tensor < kInteger ? "\"Tensor(float)\"" : "\"Tensor(long int)\"");
    }
    return "{\"values\":[" + values + "],\"shapes\":[" + shapes + "],\"types\":[" + types +
           "],\"strides\":[]}";
  }

  std::string nodes_;
  uint64_t next_id_ = 2;
};

struct Flow {
  explicit Flow(const MadeUpStep& made)
      : trace(made.Read()), step(RecordedStep::Select(trace, "").value()), flow(step) {}

  NodeId Node(uint64_t source_id) const {
    for (const NodeId node : step.nodes()) {
      if (trace.source_id(node) == source_id) return node;
    }
    return NodeId::None();
  }
  StorageVersion Read(uint64_t id, size_t i) const { return flow.inputs(Node(id))[i].version; }
  StorageVersion Written(uint64_t id) const { return flow.outputs(Node(id))[0].version; }

  Trace trace;
  RecordedStep step;
  DataFlow flow;
};

TEST(DataFlow, ConsumersReadWhatTheLastProducerAtAnAddressWrote) {
  MadeUpStep made;
  const uint64_t first = made.Add(10, 11, 20);
  const uint64_t reader = made.Add(20, 10, 21);
  const uint64_t second = made.Add(11, 11, 20);  // the address is used again
  const uint64_t late_reader = made.Add(20, 21, 22);
  const Flow flow(made);
  EXPECT_EQ(flow.Read(reader, 0), flow.Written(first));
  EXPECT_EQ(flow.Read(late_reader, 0), flow.Written(second));
  EXPECT_NE(flow.Written(first), flow.Written(second));
  EXPECT_EQ(flow.Read(late_reader, 1), flow.Written(reader));
  // What nobody wrote comes from outside, and is the same at each reading.
  EXPECT_EQ(flow.Read(first, 0), flow.Read(reader, 1));
  EXPECT_EQ(flow.Read(first, 1), flow.Read(second, 0));
}

TEST(DataFlow, AResultAtAnArgumentsAddressIsThatArgument) {
  MadeUpStep made;
  const uint64_t add =
      made.Op("aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", {10, 11}, {10});
  const Flow flow(made);
  EXPECT_EQ(flow.Written(add), flow.Read(add, 0));
}

TEST(DataFlow, ACallersResultIsWhatItsCalleeMade) {
  MadeUpStep made;
  const uint64_t outer = made.Op("aten::linear(Tensor a, Tensor b) -> Tensor", {10, 11}, {30});
  const uint64_t inner = made.Add(10, 11, 30, outer);
  const uint64_t reader = made.Add(30, 30, 31);
  const Flow flow(made);
  EXPECT_EQ(flow.Written(outer), flow.Written(inner));
  EXPECT_EQ(flow.Read(reader, 0), flow.Written(inner));
  EXPECT_EQ(flow.step.top_operators().size(), 2u);
}

// Operators that each read one Python number, all at the same address.
TEST(DataFlow, APythonNumberIsNotTheOneThatWasAtItsAddress) {
  TraceBuilder builder;
  const StringId type = builder.Intern("Tensor(long int)");
  uint64_t id = 0;
  for (const uint64_t number : {16U, 16U, 0U}) {
    const TensorId tensor = builder.InternTensor({.tensor = 7,
                                                  .storage = 8,
                                                  .numel = 1,
                                                  .element_bytes = 8,
                                                  .device = builder.Intern("cpu"),
                                                  .type = type,
                                                  .shape = builder.InternInts({}),
                                                  .number_kind = ValueKind::kInt,
                                                  .number = number});
    const Value input = Value::Tensor(type, tensor);
    builder.AddNode({.source_id = ++id,
                     .kind = NodeKind::kCompute,
                     .place = Place::kHost,
                     .name = builder.Intern("aten::neg"),
                     .inputs = builder.InternValues({&input, 1}),
                     .op_schema = builder.Intern("aten::neg(Tensor self) -> Tensor")});
  }
  const Trace trace = builder.Finish().value();
  const RecordedStep step = RecordedStep::Select(trace, "").value();
  const DataFlow flow(step);
  const auto read = [&](size_t i) { return flow.inputs(step.nodes()[i])[0].version; };
  EXPECT_EQ(read(0), read(1));
  EXPECT_NE(read(1), read(2));
}

TEST(ReplayPlan, FreesAResultAfterItsLastReader) {
  MadeUpStep made;
  made.Add(10, 11, 20);
  made.Add(20, 10, 21);
  made.Add(21, 11, 22);
  const Flow flow(made);
  const ReplayPlan plan = PlanReplay(flow.step, flow.flow, flow.step.top_operators()).value();
  ASSERT_EQ(plan.ops.size(), 3u);
  EXPECT_EQ(plan.outside.size(), 2u);
  EXPECT_EQ(plan.outside_bytes, 32);
  // The second reads the slot that the first wrote, and frees it.
  const SlotId slot = plan.ops[0].results[0];
  ASSERT_TRUE(slot);
  EXPECT_EQ(plan.ops[1].inputs[0], slot);
  EXPECT_TRUE(plan.ops[0].release.empty());
  EXPECT_EQ(plan.ops[1].release, std::vector<SlotId>{slot});
  // Two from outside, one result being read and one being made.
  EXPECT_EQ(plan.peak_bytes, 64);
}

// As a GAN does: the generator's backward adds to the gradients that the discriminator's step left.
TEST(ReplayPlan, KeepsAGradientThatIsAddedToAfterAnothersZeroGrad) {
  const std::string detach = "aten::detach(Tensor(a) self) -> Tensor(a)";
  const std::string add = "aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)";
  MadeUpStep made;
  made.Label("Optimizer.zero_grad#Adam.zero_grad");
  made.Add(10, 11, 20);
  made.Accumulate(20, detach, {20}, 20);
  made.Label("Optimizer.zero_grad#Adam.zero_grad");
  made.Add(10, 11, 30);
  const uint64_t adds = made.Accumulate(30, add, {20, 30}, 20);
  const Flow flow(made);
  const StorageVersion kept = flow.Read(adds, 0);
  EXPECT_TRUE(flow.flow.version(kept).kept_as_gradient);
  EXPECT_FALSE(flow.flow.version(flow.Read(adds, 1)).kept_as_gradient);  // added, then free

  const ReplayPlan plan = PlanReplay(flow.step, flow.flow, flow.step.top_operators()).value();
  ASSERT_EQ(plan.ops.size(), 4u);
  for (size_t i = 1; i < plan.ops.size(); ++i) EXPECT_TRUE(plan.ops[i].release_before.empty());
  EXPECT_TRUE(plan.release_at_end.empty());
  // The next step's first zero_grad frees it.
  ASSERT_EQ(plan.ops[0].release_before.size(), 1u);
  EXPECT_EQ(plan.slots[plan.ops[0].release_before[0].index()].version, kept);
}

TEST(ReplayPlan, CountsWhatTheStepChangesOfOutsideMemory) {
  MadeUpStep made;
  made.Op("aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", {10, 11}, {10});
  const Flow flow(made);
  const ReplayPlan plan = PlanReplay(flow.step, flow.flow, flow.step.top_operators()).value();
  EXPECT_EQ(plan.outside_bytes, 32);
  EXPECT_EQ(plan.written_bytes, 16);
}

TEST(RecordedStep, FindsCodeOfACompilerThatNoOperatorTellsOf) {
  MadeUpStep made;
  const uint64_t region = made.Label("Torch-Compiled Region: 0/0");
  const uint64_t graph = made.Label("## Call CompiledFxGraph fcoc5x ##", {}, region);
  made.Add(10, 11, 20, graph);
  made.Add(10, 11, 21, made.Label("Torch-Compiled Region: 1/0"));  // operators, one by one
  const uint64_t empty = made.Label("Torch-Compiled Region: 2/0");
  made.Label("Pregraph bytecode", {}, empty);
  made.Label("Optimizer.step#SGD.step");
  const Flow flow(made);
  const std::vector<NodeId> found(flow.step.compiled_code().begin(),
                                  flow.step.compiled_code().end());
  EXPECT_EQ(found, (std::vector<NodeId>{flow.Node(graph), flow.Node(empty)}));
  EXPECT_EQ(CompiledCode(flow.trace.name(found[0])), "CompiledFxGraph");
  EXPECT_EQ(CompiledCode("Pregraph bytecode"), "");
}

TEST(FillRules, AnIndexIsValidWhereItComesFrom) {
  MadeUpStep made;
  const uint64_t copy = made.Op("aten::clone(Tensor self) -> Tensor", {kInteger}, {kInteger + 1});
  const uint64_t look =
      made.Op("aten::embedding(Tensor weight, Tensor indices) -> Tensor", {10, kInteger + 1}, {20});
  const uint64_t add = made.Add(11, 20, 22);
  const Flow flow(made);
  const std::vector<FillRule> rules = InferFillRules(flow.step, flow.flow);
  const FillRule below_four = {FillRule::Kind::kIndex, 0, 4};
  EXPECT_EQ(rules[flow.Read(copy, 0).index()], below_four);
  EXPECT_EQ(rules[flow.Read(look, 1).index()], below_four);
  EXPECT_EQ(rules[flow.Read(add, 0).index()].kind, FillRule::Kind::kDefault);
}

TEST(FillRules, WhatARootIsTakenOfIsMadeOfWhatIsPositive) {
  MadeUpStep made;
  const std::string div = "aten::div.Tensor(Tensor self, Tensor other) -> Tensor";
  const std::string mul = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor";
  const std::string sqrt = "aten::sqrt(Tensor self) -> Tensor";
  const uint64_t sum = made.Add(10, 11, 12);
  const uint64_t ratio = made.Op(div, {12, 13}, {14});
  made.Op(sqrt, {14}, {15});
  const uint64_t square = made.Op(mul, {16, 16}, {17});
  made.Op(sqrt, {17}, {18});
  const uint64_t other = made.Op(mul, {19, 20}, {21});
  const uint64_t rest =
      made.Op("aten::rsub.Scalar(Tensor self, Scalar other) -> Tensor", {22}, {23});
  made.Op(sqrt, {23}, {24});
  const Flow flow(made);
  const std::vector<FillRule> rules = InferFillRules(flow.step, flow.flow);
  const auto kind = [&](uint64_t id, size_t i) { return rules[flow.Read(id, i).index()].kind; };
  EXPECT_EQ(kind(sum, 0), FillRule::Kind::kPositive);
  EXPECT_EQ(kind(sum, 1), FillRule::Kind::kDefault) << "what is added to it, an epsilon or a part";
  EXPECT_EQ(kind(ratio, 1), FillRule::Kind::kPositive);
  EXPECT_EQ(kind(square, 0), FillRule::Kind::kDefault) << "squares are positive";
  EXPECT_EQ(kind(rest, 0), FillRule::Kind::kPositive) << "below 1";
  EXPECT_EQ(kind(other, 0), FillRule::Kind::kDefault) << "no root is taken of it";
}

}  // namespace
}  // namespace etude
