#include "src/run/step/recorded_step.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/run/test_support.h"
#include "src/trace/trace_builder.h"
#include "src/trace/words/memory_event.h"

namespace etude {
namespace {

using testing_support::Flow;
using testing_support::MadeUpStep;

class RecordedStepTest : public testing::Test {
 protected:
  void Add(uint64_t id, std::string_view name, uint64_t parent, bool is_operator) {
    NodeRow row;
    row.source_id = id;
    row.name = builder_.Intern(name);
    if (is_operator) row.op_schema = builder_.Intern(std::string(name) + "() -> ()");
    row.kind = is_operator ? NodeKind::kOperator : NodeKind::kLabel;
    row.parent = parent;
    builder_.AddNode(row);
  }

  // Adds an operator on a thread, with a tensor of this storage and a number.
  void AddOn(uint64_t tid, uint64_t id, std::string_view name, uint64_t parent, uint64_t storage,
             int64_t number = 0) {
    NodeRow row;
    row.source_id = id;
    row.name = builder_.Intern(name);
    row.op_schema = builder_.Intern(std::string(name) + "() -> ()");
    row.kind = NodeKind::kOperator;
    row.parent = parent;
    row.tid = tid;
    const StringId type = builder_.Intern("Tensor(float)");
    const TensorId tensor = builder_.InternTensor({.tensor = id, .storage = storage, .type = type});
    row.inputs = builder_.InternValues(std::vector<Value>{
        Value::Tensor(type, tensor), Value::Int(builder_.Intern("Int"), number)});
    builder_.AddNode(row);
  }

  std::vector<uint64_t> Ids(std::span<const NodeId> nodes, const Trace& trace) {
    std::vector<uint64_t> ids;
    for (const NodeId node : nodes) ids.push_back(trace.source_id(node));
    return ids;
  }

  TraceBuilder builder_;
};

// linear on a tensor of a subclass: PyTorch decomposes it and hands t and addmm to Python, which
// runs other operators for them; detach needs none.
TEST_F(RecordedStepTest, WhatPythonRanInsteadOfAnOperatorCounts) {
  Add(1, "forward", 1, false);
  Add(2, "aten::linear", 1, true);
  Add(3, "aten::t", 2, true);
  Add(4, "PythonSubclass", 3, false);
  Add(5, "aten::t", 4, true);
  Add(6, "aten::transpose", 5, true);
  Add(7, "aten::addmm", 2, true);
  Add(8, "PythonSubclass", 7, false);
  Add(9, "aten::addmm", 8, true);
  Add(10, "aten::detach", 1, true);
  Add(11, "PythonDispatchMode", 10, false);
  Add(12, "aten::relu", 1, true);
  auto trace = std::move(builder_).Finish();
  ASSERT_TRUE(trace) << trace.error().message;
  const auto step = RecordedStep::Select(*trace, "");
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(Ids(step->top_operators(), *trace), (std::vector<uint64_t>{5, 9, 12}));
  EXPECT_FALSE(step->is_operator(step->position(trace->Find(2))));
  EXPECT_TRUE(step->is_operator(step->position(trace->Find(6))));
  EXPECT_EQ(step->enclosing_operator(step->position(trace->Find(6))), trace->Find(5));
  EXPECT_TRUE(step->enclosing_operator(step->position(trace->Find(5))).is_none());
  EXPECT_EQ(Ids(step->OperatorsBelow(trace->Find(5)), *trace), (std::vector<uint64_t>{6}));
}

// The first of the optimizer's labels, zero_grad, has no operators if gradients are set to none.
TEST_F(RecordedStepTest, ALabelIsTheFirstOfItsNameThatHasOperators) {
  Add(1, "Optimizer.zero_grad#SGD.zero_grad", 1, false);
  Add(2, "forward", 2, false);
  Add(3, "aten::linear", 2, true);
  Add(4, "Optimizer.step#SGD.step", 4, false);
  Add(5, "inner", 4, false);
  Add(6, "aten::add_", 5, true);
  Add(7, "Optimizer.step#SGD.step", 7, false);
  Add(8, "aten::add_", 7, true);
  auto trace = std::move(builder_).Finish();
  ASSERT_TRUE(trace) << trace.error().message;
  const auto step = RecordedStep::Select(*trace, "Optimizer");
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(Ids(step->nodes(), *trace), (std::vector<uint64_t>{4, 5, 6}));
  EXPECT_EQ(Ids(step->top_operators(), *trace), (std::vector<uint64_t>{6}));
  const auto op = RecordedStep::Select(*trace, "aten::lin");
  ASSERT_TRUE(op) << op.error().message;
  EXPECT_EQ(Ids(op->top_operators(), *trace), (std::vector<uint64_t>{3}));
  EXPECT_EQ(RecordedStep::Select(*trace, "zero_grad").error().message,
            "no operator below any node with 'zero_grad' in its name");
  EXPECT_EQ(RecordedStep::Select(*trace, "nosuch").error().message,
            "no node of the step has a name with 'nosuch' in it");
}

// A region's operators may be all that ran, unless a compiler made kernels.
TEST_F(RecordedStepTest, RegionsOfCompiledKernelsMayHaveRunMoreThanTheyShow) {
  Add(1, "Torch-Compiled Region: 0/0", 1, false);
  Add(2, "CompiledFunction", 1, false);
  Add(3, "aten::addmm", 2, true);
  Add(4, "autograd::engine::evaluate_function: CompiledFunctionBackward", 4, false);
  Add(5, "CompiledFunctionBackward", 4, false);
  Add(6, "aten::mm", 5, true);
  Add(7, "Torch-Compiled Region: 1/0", 7, false);
  auto trace = std::move(builder_).Finish();
  ASSERT_TRUE(trace) << trace.error().message;
  const auto compiled = [&](bool compiled_kernels) {
    return Ids(RecordedStep::Select(*trace, "", 0, compiled_kernels)->compiled_code(), *trace);
  };
  EXPECT_EQ(compiled(false), (std::vector<uint64_t>{7}));
  EXPECT_EQ(compiled(true), (std::vector<uint64_t>{1, 5, 7}));
}

// Events of an allocator have ids after all calls: they do not keep a call open.
TEST_F(RecordedStepTest, EventsOfAllocatorsAreNoCalls) {
  Add(1, "forward", 1, false);
  Add(2, "aten::linear", 1, true);
  Add(3, "aten::addmm", 2, true);
  Add(4, "aten::relu", 1, true);
  for (const uint64_t caller : {2U, 3U}) {
    NodeRow row;
    row.source_id = caller + 3;
    row.name = builder_.Intern(kMemoryEvent);
    row.kind = NodeKind::kMetadata;
    row.place = Place::kHost;
    row.parent = caller;
    builder_.AddNode(row);
  }
  auto trace = std::move(builder_).Finish();
  ASSERT_TRUE(trace) << trace.error().message;
  const auto step = RecordedStep::Select(*trace, "");
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(Ids(step->nodes(), *trace), (std::vector<uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(step->last_inside(1), 2u) << "linear has returned before relu is called";
}

// An operator divides its work among threads of a pool: its callees there have no caller on their
// thread, but match its callees on its own thread.
TEST_F(RecordedStepTest, WhatAnOperatorCallsOnThreadsOfAPoolIsInsideIt) {
  AddOn(1, 1, "aten::conv", 1, 50);
  AddOn(2, 2, "aten::select", 2, 51, 1);  // before the same call on the operator's own thread
  AddOn(2, 3, "aten::as_strided", 2, 51);
  AddOn(1, 4, "aten::select", 1, 51, 0);
  AddOn(1, 5, "aten::as_strided", 4, 51);
  AddOn(2, 6, "aten::select", 6, 51, 2);
  AddOn(1, 7, "aten::relu", 7, 52);
  auto trace = std::move(builder_).Finish();
  ASSERT_TRUE(trace) << trace.error().message;
  const auto step = RecordedStep::Select(*trace, "");
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(Ids(step->top_operators(), *trace), (std::vector<uint64_t>{1, 7}));
  EXPECT_EQ(Ids(step->OperatorsBelow(trace->Find(1)), *trace), (std::vector<uint64_t>{2, 4, 6}));
}

// Work on a program's own thread stays outside, even if one call looks like a pool's.
TEST_F(RecordedStepTest, WhatAProgramRunsOnAThreadOfItsOwnIsInsideNothing) {
  AddOn(1, 1, "aten::conv", 1, 50);
  AddOn(1, 2, "aten::select", 1, 51, 0);
  AddOn(2, 3, "aten::select", 3, 51, 1);
  AddOn(2, 4, "aten::mul", 4, 60);
  AddOn(3, 5, "aten::select", 5, 61, 1);  // other memory
  AddOn(1, 6, "aten::relu", 6, 52);
  auto trace = std::move(builder_).Finish();
  ASSERT_TRUE(trace) << trace.error().message;
  const auto step = RecordedStep::Select(*trace, "");
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(Ids(step->top_operators(), *trace), (std::vector<uint64_t>{1, 3, 4, 5, 6}));
}

// Gloo's work for a collective on its own thread is inside the collective, even if other operators
// run meanwhile. It is inside the label if the trace has its issuer.
TEST_F(RecordedStepTest, WhatABackendRunsForACollectiveIsInsideIt) {
  const auto add_label = [&](uint64_t id, bool says_for_whom) {
    NodeRow row;
    row.source_id = id;
    row.name = builder_.Intern("gloo:all_gather");
    row.kind = NodeKind::kLabel;
    row.parent = id;
    row.tid = 2;
    const NodeId label = builder_.AddNode(row);
    if (says_for_whom) builder_.AddDep(label, /*on=*/1, DepKind::kControl);
  };
  AddOn(1, 1, "c10d::_allgather_base_", 1, 50);
  AddOn(1, 2, "aten::mm", 2, 51);
  add_label(3, true);
  AddOn(2, 4, "aten::copy_", 3, 50);
  AddOn(1, 5, "aten::relu", 5, 51);
  AddOn(2, 6, "aten::copy_", 3, 50);
  AddOn(2, 7, "aten::add", 7, 60);
  add_label(8, false);
  AddOn(2, 9, "aten::copy_", 8, 50);
  auto trace = std::move(builder_).Finish();
  ASSERT_TRUE(trace) << trace.error().message;
  const auto step = RecordedStep::Select(*trace, "");
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(Ids(step->top_operators(), *trace), (std::vector<uint64_t>{1, 2, 5, 7, 9}));
  EXPECT_EQ(step->last_inside(0), 0U);
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

}  // namespace
}  // namespace etude
