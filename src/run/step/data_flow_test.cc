#include "src/run/step/data_flow.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/run/step/recorded_step.h"
#include "src/run/test_support.h"
#include "src/trace/trace_builder.h"
#include "src/trace/words/phase.h"

namespace etude {
namespace {

using testing_support::Flow;
using testing_support::MadeUpStep;

constexpr uint64_t kAddress = 4096;

class DataFlowOfNumbersTest : public testing::Test {
 protected:
  // The Python number 1e-6 as a tensor, and a result, both at one address.
  Value Number() {
    return Tensor({.numel = 1, .element_bytes = 8, .number_kind = ValueKind::kDouble, .number = 42},
                  "Tensor(double)");
  }
  Value Contiguous(int64_t elements) {
    TensorUse use{.numel = elements, .element_bytes = 4};
    const int64_t stride = 1;
    use.strides = builder_.InternInts({&stride, 1});
    return Tensor(use, "Tensor(float)", {&elements, 1});
  }
  Value Result() { return Tensor({.numel = 1, .element_bytes = 4}, "Tensor(float)"); }

  void Op(uint64_t id, uint64_t parent, const std::vector<Value>& inputs,
          const std::vector<Value>& outputs) {
    NodeRow row{.source_id = id, .kind = NodeKind::kOperator, .place = Place::kHost};
    row.name = builder_.Intern("aten::add");
    row.op_schema = builder_.Intern("aten::add.Tensor(Tensor self, Tensor other) -> Tensor");
    if (parent != 0) row.parent = parent;
    row.inputs = builder_.InternValues(inputs);
    row.outputs = builder_.InternValues(outputs);
    builder_.AddNode(row);
  }

  TraceBuilder builder_;

 private:
  Value Tensor(TensorUse use, std::string_view type, std::span<const int64_t> sizes = {}) {
    use.tensor = use.storage = kAddress;
    use.type = builder_.Intern(type);
    use.shape = builder_.InternInts(sizes);
    return Value::Tensor(use.type, builder_.InternTensor(use));
  }
};

// The number of a later call must not be taken for the result ("a view of 8 bytes on memory of 4").
TEST_F(DataFlowOfNumbersTest, AResultDoesNotLieInANumberThatACalleeWasGiven) {
  Op(2, 0, {}, {Result()});
  Op(3, 2, {Number()}, {});
  Op(4, 0, {Number()}, {});
  const Trace trace = builder_.Finish().value();
  const RecordedStep step = RecordedStep::Select(trace, "").value();
  const DataFlow flow(step);
  const StorageVersion result = flow.outputs(trace.Find(2))[0].version;
  EXPECT_NE(result, flow.inputs(trace.Find(3))[0].version);
  EXPECT_NE(result, flow.inputs(trace.Find(4))[0].version);
}

// FSDP gives a storage memory outside of operators, at the address of a freed result.
TEST_F(DataFlowOfNumbersTest, WhatReachesBeyondAResultIsOtherMemory) {
  Op(2, 0, {}, {Contiguous(4)});
  Op(3, 0, {Contiguous(2)}, {});
  Op(4, 0, {Contiguous(8)}, {});
  Op(5, 0, {Contiguous(4)}, {});
  const Trace trace = builder_.Finish().value();
  const RecordedStep step = RecordedStep::Select(trace, "").value();
  const DataFlow flow(step);
  const StorageVersion result = flow.outputs(trace.Find(2))[0].version;
  const StorageVersion other = flow.inputs(trace.Find(4))[0].version;
  EXPECT_EQ(result, flow.inputs(trace.Find(3))[0].version);
  EXPECT_NE(result, other);
  EXPECT_EQ(other, flow.inputs(trace.Find(5))[0].version);
}

TEST(DataFlow, ConsumersReadWhatTheLastProducerAtAnAddressWrote) {
  MadeUpStep made;
  const uint64_t first = made.Add(10, 11, 20);
  const uint64_t reader = made.Add(20, 10, 21);
  const uint64_t second = made.Add(11, 11, 20);  // the address is reused
  const uint64_t late_reader = made.Add(20, 21, 22);
  const Flow flow(made);
  EXPECT_EQ(flow.Read(reader, 0), flow.Written(first));
  EXPECT_EQ(flow.Read(late_reader, 0), flow.Written(second));
  EXPECT_NE(flow.Written(first), flow.Written(second));
  EXPECT_EQ(flow.Read(late_reader, 1), flow.Written(reader));
  // Memory that nobody wrote comes from outside and keeps its version.
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

// A synthetic backward pass: nodes with one argument and one result, by the address of their
// memory.
class BackwardPass {
 public:
  uint64_t Add(uint64_t parent, uint8_t scope, uint64_t input, uint64_t output) {
    NodeRow row{.source_id = ++id_, .kind = NodeKind::kOperator, .place = Place::kHost};
    row.name = builder_.Intern("aten::neg");
    row.op_schema = builder_.Intern("aten::neg(Tensor self) -> Tensor");
    if (parent != 0) row.parent = parent;
    row.scope = scope;
    row.inputs = List(input);
    row.outputs = List(output);
    builder_.AddNode(row);
    return id_;
  }
  Trace Read() { return builder_.Finish().value(); }

 private:
  ValueListId List(uint64_t address) {
    const StringId type = builder_.Intern("Tensor(float)");
    const Value tensor =
        Value::Tensor(type, builder_.InternTensor({.tensor = address + 1000,
                                                   .storage = address,
                                                   .numel = 1,
                                                   .element_bytes = 4,
                                                   .device = builder_.Intern("cpu"),
                                                   .type = type,
                                                   .shape = builder_.InternInts({})}));
    return builder_.InternValues({&tensor, 1});
  }

  TraceBuilder builder_;
  uint64_t id_ = 0;
};

TEST(DataFlow, BackwardFunctionsHoldWhatIsUsedInThem) {
  BackwardPass pass;
  const uint64_t forward = pass.Add(0, 0, 10, 11);
  const uint64_t outer = pass.Add(0, kBackwardScope, 20, 29);
  const uint64_t maker = pass.Add(outer, kBackwardScope, 20, 12);
  const uint64_t inner = pass.Add(outer, kBackwardScope, 12, 28);
  pass.Add(inner, 0, 12, 27);
  const uint64_t last = pass.Add(outer, 0, 20, 26);
  const uint64_t behind = pass.Add(0, kBackwardScope, 29, 11);
  const Trace trace = pass.Read();
  const RecordedStep step = RecordedStep::All(trace);
  const DataFlow flow(step);
  const auto held_until = [&](StorageVersion version) { return flow.version(version).held_until; };
  const auto written = [&](uint64_t id) { return flow.outputs(trace.Find(id))[0].version; };
  EXPECT_EQ(held_until(written(forward)), 0u) << "not used again";
  EXPECT_EQ(held_until(flow.inputs(trace.Find(outer))[0].version), step.position(trace.Find(last)));
  EXPECT_EQ(held_until(written(maker)), step.last_inside(step.position(trace.Find(inner))))
      << "made inside the outer function, given to the inner one";
  EXPECT_EQ(held_until(written(outer)), step.position(trace.Find(behind)));
}

TEST(DataFlow, OperatorsNestAsDeepAsTheyLike) {
  constexpr uint64_t kDepth = 20'000;
  BackwardPass pass;
  for (uint64_t i = 0; i < kDepth; ++i) pass.Add(i, kBackwardScope, 10, 11);
  const Trace trace = pass.Read();
  const RecordedStep step = RecordedStep::All(trace);
  const DataFlow flow(step);
  EXPECT_EQ(flow.version_count(), 2u) << "what all read, and what the innermost one made";
  for (const NodeId node : step.nodes()) {
    EXPECT_EQ(flow.inputs(node)[0].version, flow.inputs(step.nodes()[0])[0].version);
    EXPECT_EQ(flow.outputs(node)[0].version, flow.outputs(step.nodes()[0])[0].version);
  }
  EXPECT_EQ(flow.version(StorageVersion(0)).held_until, kDepth - 1);
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

}  // namespace
}  // namespace etude
