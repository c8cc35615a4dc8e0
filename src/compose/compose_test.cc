#include "src/compose/compose.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/analysis/view/modules.h"
#include "src/compose/composition.h"
#include "src/compose/part_plan.h"
#include "src/run/activity.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/other_process.h"
#include "src/trace/trace_builder.h"
#include "src/trace/validator.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

struct Tensor {
  uint64_t address = 0;
};

struct Call {
  uint64_t id;
  std::string name;  // with a schema if it has a namespace of operators
  uint64_t parent;
  std::optional<int64_t> start;
  std::optional<int64_t> duration;
  std::vector<Tensor> inputs = {};
  std::vector<Tensor> outputs = {};
  std::optional<uint64_t> works_for = {};  // of a backend's label: the operator
};

constexpr uint64_t kWeight = 0x100;
constexpr uint64_t kInput = 0x200;
constexpr uint64_t kHidden = 0x300;
constexpr uint64_t kGradient = 0x400;

Trace TraceOf(const std::vector<Call>& calls) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  builder.AddNode({.source_id = 1, .kind = NodeKind::kProcess, .name = builder.Intern("process")});
  builder.AddNode(
      {.source_id = 2, .kind = NodeKind::kThread, .name = builder.Intern("main"), .parent = 1});
  const auto list = [&](const std::vector<Tensor>& tensors) {
    std::vector<Value> values;
    const StringId type = builder.Intern("Tensor(float)");
    for (const Tensor& tensor : tensors) {
      const std::vector<int64_t> sizes = {4};
      values.push_back(
          Value::Tensor(type, builder.InternTensor({.tensor = tensor.address,
                                                    .storage = tensor.address,
                                                    .numel = 4,
                                                    .element_bytes = 4,
                                                    .type = type,
                                                    .shape = builder.InternInts(sizes)})));
    }
    return builder.InternValues(values);
  };
  for (const Call& call : calls) {
    const bool is_operator =
        call.name.find("::") != std::string::npos && !call.name.starts_with("autograd::");
    NodeRow row{.source_id = call.id,
                .kind = is_operator ? NodeKind::kOperator : NodeKind::kLabel,
                .place = Place::kHost,
                .name = builder.Intern(call.name),
                .parent = call.parent};
    if (call.start) row.start = Nanos{*call.start};
    if (call.duration) row.duration = Nanos{*call.duration};
    row.inputs = list(call.inputs);
    row.outputs = list(call.outputs);
    row.seq_id = static_cast<int64_t>(call.id);
    if (is_operator) {
      const bool communicates = IsC10dOperator(call.name);
      row.op_schema = builder.Intern(
          call.name + (communicates ? "(Tensor x) -> (Tensor, __torch__.torch.classes.c10d.Work)"
                                    : "(Tensor x) -> Tensor"));
    }
    const NodeId node = builder.AddNode(row);
    if (!call.works_for) continue;
    builder.AddDep(node, *call.works_for, DepKind::kControl);
    builder.SetKind(node, NodeKind::kCollective);
    builder.SetComm(node, {.dtype = DType::kFloat32, .bytes = Bytes{16}, .in_elements = 4});
  }
  return builder.Finish().value();
}

// A step from 100 to 200: linear (which calls addmm), relu in the memory of its result, mm in the
// backward pass.
Trace Step() {
  return TraceOf({
      {10, "ProfilerStep#4", 2, 100, 100},
      {11, "aten::linear", 10, 110, 30, {{kInput}, {kWeight}}, {{kHidden}}},
      {12, "aten::addmm", 11, 115, 20, {{kInput}, {kWeight}}, {{kHidden}}},
      {13, "aten::relu", 10, 150, 10, {{kHidden}}, {{kHidden}}},
      {14, "autograd::engine::evaluate_function: Mm", 10, 165, 30},
      {15, "aten::mm", 14, 170, 20, {{kHidden}, {kWeight}}, {{kGradient}}},
  });
}

Result<Composed> ComposeOf(const std::string& parts, const std::vector<const Trace*>& traces) {
  std::string text = "[traces]\n";
  std::vector<ComposeInput> inputs;
  for (size_t i = 0; i < traces.size(); ++i) {
    text += "t" + std::to_string(i) + " = \"x\"\n";
    inputs.push_back({.trace = traces[i], .name = "t" + std::to_string(i) + ".json"});
  }
  return Compose(ParseRecipe(text + parts, "r.toml").value(), inputs, {});
}

Composed ComposeStep(const std::string& parts) {
  const Trace trace = Step();
  Result<Composed> composed = ComposeOf(parts, {&trace});
  EXPECT_TRUE(composed) << composed.error().message;
  EXPECT_TRUE(IsValid(Validate(composed->trace)));
  return std::move(*composed);
}

std::string ComposeError(const std::string& parts) {
  const Trace trace = Step();
  const Result<Composed> composed = ComposeOf(parts, {&trace});
  if (composed) return "none";
  EXPECT_EQ(composed.error().code, ErrorCode::kBadInput);
  return composed.error().message;
}

// Returns the names of the operators to run, in order.
std::vector<std::string> Runs(const Trace& trace) {
  const RecordedStep step = RecordedStep::Select(trace, "").value();
  std::vector<std::string> names;
  for (const NodeId node : step.top_operators()) names.emplace_back(trace.name(node));
  return names;
}

using Names = std::vector<std::string>;

TEST(ComposeTest, ARecordedStepIsAStepAgain) {
  const Composed composed = ComposeStep("[[part]]\n");
  const Trace& trace = composed.trace;
  EXPECT_EQ(Runs(trace), (Names{"aten::linear", "aten::relu", "aten::mm"}));
  const RecordedStep step = RecordedStep::Select(trace, "").value();
  EXPECT_EQ(step.mark_count(), 1u);
  EXPECT_EQ(trace.name(step.mark()), "ProfilerStep#0");
  EXPECT_EQ(trace.duration(step.mark()), Nanos{100});
  EXPECT_EQ(trace.start(step.top_operators()[0]), Nanos{10});
  EXPECT_EQ(composed.composition.expected(), Nanos{60});
  EXPECT_EQ(composed.composition.operators(), 3);
}

// A step of process `pid`, on its main thread and another, both in process `ran_in`.
Trace StepOfProcess(uint64_t pid, uint64_t ran_in) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  builder.info().pid = pid;
  uint64_t id = 1;
  builder.AddNode({.source_id = id, .kind = NodeKind::kProcess, .name = builder.Intern("process")});
  for (const uint64_t tid : {ran_in, ran_in + 1}) {
    const uint64_t thread = ++id;
    builder.AddNode({.source_id = thread,
                     .kind = NodeKind::kThread,
                     .name = builder.Intern("thread"),
                     .parent = 1});
    NodeRow row{.source_id = ++id,
                .kind = NodeKind::kOperator,
                .place = Place::kHost,
                .name = builder.Intern("aten::relu"),
                .parent = thread};
    row.op_schema = builder.Intern("aten::relu(Tensor x) -> Tensor");
    row.lane = builder.InternLane({.process = builder.Intern(std::to_string(ran_in)),
                                   .thread = builder.Intern(std::to_string(tid))});
    row.tid = tid;
    row.start = Nanos{static_cast<int64_t>(10 * id)};
    row.duration = Nanos{10};
    builder.AddNode(row);
  }
  return builder.Finish().value();
}

TEST(ComposeTest, TracesOfTwoProcessesBecomeOneProcess) {
  const Trace a = StepOfProcess(100, 100);
  const Trace b = StepOfProcess(200, 200);
  for (const std::string parts : {"[[part]]\ntrace = \"t0\"\n[[part]]\ntrace = \"t1\"\n",
                                  "[[part]]\ntrace = \"t1\"\n[[part]]\ntrace = \"t0\"\n"}) {
    const Composed composed = ComposeOf(parts, {&a, &b}).value();
    const Trace& trace = composed.trace;
    EXPECT_EQ(CountOfOtherProcess(trace), 0u) << parts;
    std::set<std::string> processes;
    std::set<std::string> threads;
    ForEachNode(trace, [&](NodeId node) {
      const LaneId lane = trace.lane_id(node);
      if (!lane) return;
      processes.emplace(trace.text(trace.lane(lane).process));
      threads.emplace(trace.text(trace.lane(lane).thread));
    });
    EXPECT_EQ(processes, (std::set<std::string>{std::to_string(trace.info().pid.value_or(0))}));
    EXPECT_EQ(threads.size(), 3u) << "the main threads are one";
  }
}

TEST(ComposeTest, WhatRanInAnotherProcessThanItsTraceIsOfStaysSuspect) {
  const Trace good = StepOfProcess(100, 100);
  const Trace suspect = StepOfProcess(200, 300);
  for (const std::string parts : {"[[part]]\ntrace = \"t0\"\n[[part]]\ntrace = \"t1\"\n",
                                  "[[part]]\ntrace = \"t1\"\n[[part]]\ntrace = \"t0\"\n"}) {
    EXPECT_EQ(CountOfOtherProcess(ComposeOf(parts, {&good, &suspect})->trace), 2u) << parts;
  }
}

TEST(ComposeTest, LabelsOfComposingAreNoModules) {
  const Composed composed = ComposeStep("[[part]]\n");
  const Trace& trace = composed.trace;
  const Launches launches(trace);
  const Modules modules(trace, launches);
  const RecordedStep step = RecordedStep::Select(trace, "").value();
  EXPECT_EQ(modules.name(step.top_operators()[0]), kNoModule);
}

TEST(ComposeTest, NamesOfPartsMeanNothingElse) {
  const Composed composed = ComposeStep("[[part]]\nname = \"ProfilerStep#7\"\nrepeat = 2\n");
  const RecordedStep step = RecordedStep::Select(composed.trace, "").value();
  EXPECT_EQ(step.mark_count(), 1u);
  EXPECT_EQ(step.top_operators().size(), 6u);
  EXPECT_TRUE(RecordedStep::Select(composed.trace, "part ProfilerStep#7, 2 of 2"));
}

TEST(ComposeTest, MemoryOfARepetitionIsItsOwnAndMemoryFromOutsideIsNot) {
  const Composed composed = ComposeStep("[[part]]\nrepeat = 2\n");
  const RecordedStep step = RecordedStep::Select(composed.trace, "").value();
  const DataFlow flow(step);
  const auto tops = step.top_operators();
  ASSERT_EQ(tops.size(), 6u);
  const auto in = [&](size_t op, size_t i) { return flow.inputs(tops[op])[i].version; };
  const auto out = [&](size_t op) { return flow.outputs(tops[op])[0].version; };
  EXPECT_EQ(in(0, 0), in(3, 0));  // the input
  EXPECT_EQ(in(0, 1), in(3, 1));  // the weight
  EXPECT_EQ(in(5, 1), in(0, 1));
  EXPECT_NE(out(0), out(3));
  EXPECT_EQ(in(1, 0), out(0));
  EXPECT_EQ(in(4, 0), out(3));
  EXPECT_EQ(in(5, 0), out(3));
  EXPECT_NE(out(2), out(5));
}

TEST(ComposeTest, LaterPartsReadWhatEarlierOnesWrote) {
  const Composed composed = ComposeStep(
      "[[part]]\nselect = { phase = \"forward\" }\n[[part]]\nselect = { phase = \"backward\" }\n");
  EXPECT_EQ(Runs(composed.trace), (Names{"aten::linear", "aten::relu", "aten::mm"}));
  const RecordedStep step = RecordedStep::Select(composed.trace, "").value();
  const DataFlow flow(step);
  const auto tops = step.top_operators();
  EXPECT_EQ(flow.inputs(tops[2])[0].version, flow.outputs(tops[0])[0].version);
}

TEST(ComposeTest, TracesShareNoMemory) {
  const Trace first = Step();
  const Trace second = Step();
  const Composed composed =
      ComposeOf("[[part]]\ntrace = \"t0\"\n[[part]]\ntrace = \"t1\"\n", {&first, &second}).value();
  const RecordedStep step = RecordedStep::Select(composed.trace, "").value();
  const DataFlow flow(step);
  const auto tops = step.top_operators();
  ASSERT_EQ(tops.size(), 6u);
  std::set<StorageVersion> versions;
  for (const size_t op : {size_t{0}, size_t{3}}) {
    for (const DataFlow::Use& use : flow.inputs(tops[op])) versions.insert(use.version);
  }
  EXPECT_EQ(versions.size(), 4u);
  EXPECT_TRUE(IsValid(Validate(composed.trace)));
}

TEST(ComposeTest, OperatorsInsideOthersRunAlone) {
  const Composed composed =
      ComposeStep("[[part]]\nselect = { op = \"aten::addmm\" }\nrepeat = 3\n");
  EXPECT_EQ(Runs(composed.trace), (Names{"aten::addmm", "aten::addmm", "aten::addmm"}));
  const RecordedStep step = RecordedStep::Select(composed.trace, "").value();
  EXPECT_EQ(composed.trace.duration(step.mark()), Nanos{60});
  EXPECT_EQ(composed.composition.expected(), Nanos{60});
}

TEST(ComposeTest, WhatIsDroppedTakesNoTime) {
  const Composed composed = ComposeStep("[[part]]\ndrop = { op = \"aten::relu\" }\n");
  const Trace& trace = composed.trace;
  EXPECT_EQ(Runs(trace), (Names{"aten::linear", "aten::mm"}));
  EXPECT_EQ(composed.composition.parts[0].dropped, 1);
  const RecordedStep step = RecordedStep::Select(trace, "").value();
  // From 140, where linear ended, to 160, where relu did.
  EXPECT_EQ(trace.duration(step.mark()), Nanos{80});
  EXPECT_EQ(trace.start(step.top_operators()[1]), Nanos{50});
  EXPECT_EQ(composed.composition.expected(), Nanos{50});
}

TEST(ComposeTest, AnOperatorOfWhichAPartIsDroppedDoesNotRunAsAWhole) {
  const Composed composed = ComposeStep("[[part]]\ndrop = { op = \"aten::addmm\" }\n");
  EXPECT_EQ(Runs(composed.trace), (Names{"aten::relu", "aten::mm"}));
  EXPECT_EQ(composed.composition.parts[0].taken_apart, 1);
}

TEST(ComposeTest, AReplacedOperatorHasTheSameArgumentsAndNoKnownTime) {
  const Composed composed =
      ComposeStep("[[part]]\nreplace = { op = \"aten::linear\", with = \"my::linear.fast\" }\n");
  const Trace& trace = composed.trace;
  EXPECT_EQ(Runs(trace), (Names{"my::linear", "aten::relu", "aten::mm"}));
  const RecordedStep step = RecordedStep::Select(trace, "").value();
  const NodeId replaced = step.top_operators()[0];
  EXPECT_EQ(SchemaOf(trace, replaced), "my::linear.fast(Tensor x) -> Tensor");
  EXPECT_EQ(trace.inputs(replaced).size(), 2u);
  EXPECT_TRUE(step.OperatorsBelow(replaced).empty());
  EXPECT_EQ(composed.composition.expected(), std::nullopt);
  EXPECT_EQ(composed.composition.untimed(), 1);
}

TEST(ComposeTest, ScaledCommunicationWorksOnMemoryOfItsOwn) {
  const Trace trace = TraceOf({
      {10, "aten::mm", 2, 0, 10, {{kInput}, {kWeight}}, {{kHidden}}},
      {11, "c10d::allreduce_", 2, 10, 10, {{kHidden}}, {{kHidden}}},
      {12, "_c10d_functional::wait_tensor", 2, 20, 10, {{kHidden}}, {{kHidden}}},
      {13, "aten::relu", 2, 30, 10, {{kHidden}}, {{kGradient}}},
  });
  const Composed composed = ComposeOf("[[part]]\nscale_comm = 0.5\nrepeat = 2\n", {&trace}).value();
  EXPECT_EQ(composed.composition.parts[0].scaled, 2);
  EXPECT_EQ(composed.composition.parts[0].untimed, 2);
  const RecordedStep step = RecordedStep::Select(composed.trace, "").value();
  const DataFlow flow(step);
  const auto tops = step.top_operators();
  ASSERT_EQ(tops.size(), 8u);
  const auto numel = [&](const DataFlow::Use& use) {
    const TensorUse& tensor = composed.trace.tensor(use.tensor);
    EXPECT_EQ(composed.trace.ints(tensor.shape)[0], tensor.numel);
    return tensor.numel;
  };
  const DataFlow::Use moved = flow.inputs(tops[1])[0];
  EXPECT_EQ(numel(moved), 2);
  EXPECT_EQ(numel(flow.outputs(tops[1])[0]), 2);
  EXPECT_EQ(numel(flow.inputs(tops[3])[0]), 4);
  EXPECT_EQ(flow.inputs(tops[2])[0].version, moved.version);
  EXPECT_NE(flow.inputs(tops[3])[0].version, moved.version);
  EXPECT_EQ(flow.inputs(tops[3])[0].version, flow.outputs(tops[0])[0].version);
  EXPECT_NE(flow.inputs(tops[5])[0].version, moved.version);

  const auto refused = ComposeOf("[[part]]\nscale_comm = 0.3\n", {&trace});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "r.toml:3:1: t0.json: scale_comm: node 11 'c10d::allreduce_': the first size of one of "
            "its tensors, 4 times 0.3 is not a whole number");
  EXPECT_FALSE(ComposeOf("[[part]]\nselect = { op = \"aten::mm\" }\nscale_comm = 2\n", {&trace}));
}

// The result of a collective is needed at 90; a backend's thread had it at 80.
Trace StepWithACollective() {
  return TraceOf({
      {10, "aten::mm", 2, 0, 10, {{kInput}, {kWeight}}, {{kHidden}}},
      {11, "c10d::allreduce_", 2, 10, 5, {{kHidden}}, {{kHidden}}},
      {12, "gloo:all_reduce", 2, 18, 62, {{kHidden}}, {}, 11},
      {13, "aten::mm", 2, 20, 10, {{kInput}, {kWeight}}, {{kGradient}}},
      {14, "aten::relu", 2, 90, 10, {{kHidden}}, {{kHidden}}},
  });
}

// The label must be scaled, and relu must still wait.
TEST(ComposeTest, WhatWorksForScaledCommunicationAndWaitsForItStillDoes) {
  const Trace source = StepWithACollective();
  const Composed composed =
      ComposeOf("[[part]]\nscale_comm = 0.5\nrepeat = 2\n", {&source}).value();
  const Trace& trace = composed.trace;
  NodeId last;
  size_t labels = 0;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.name(node) == "c10d::allreduce_") last = node;
    if (trace.name(node) == "aten::relu") {
      ASSERT_EQ(trace.deps(node).size(), 1u);
      EXPECT_EQ(trace.deps(node)[0], last);
      EXPECT_EQ(trace.dep_kinds(node)[0], DepKind::kSync);
    }
    if (trace.name(node) != "gloo:all_reduce") return;
    ++labels;
    EXPECT_EQ(trace.deps(node)[0], last);
    EXPECT_EQ(trace.comm(node)->in_elements, 2);
    EXPECT_EQ(trace.comm(node)->bytes, Bytes{8});
    const TensorUse& use = trace.tensor(trace.inputs(node)[0].as_tensor());
    EXPECT_EQ(use.numel, 2);
    EXPECT_EQ(use.storage, trace.tensor(trace.inputs(last)[0].as_tensor()).storage);
    EXPECT_EQ(trace.duration(node), Nanos{62});
  });
  EXPECT_EQ(labels, 2u);
}

TEST(ComposeTest, TheWaitForADroppedCollectiveIsLeftOut) {
  const Trace source = StepWithACollective();
  for (const char* what : {"comm = true", "op = \"c10d::allreduce_\""}) {
    const Composed composed =
        ComposeOf(std::string("[[part]]\ndrop = { ") + what + " }\n", {&source}).value();
    const Trace& trace = composed.trace;
    const RecordedStep step = RecordedStep::Select(trace, "").value();
    EXPECT_EQ(Runs(trace), (Names{"aten::mm", "aten::mm", "aten::relu"}));
    // From 10 to 15 the collective was issued, from 30 to 80 it was waited for.
    EXPECT_EQ(trace.duration(step.mark()), Nanos{45});
    EXPECT_EQ(trace.start(step.top_operators()[2]), Nanos{35});
    ForEachNode(trace, [&](NodeId node) { EXPECT_NE(trace.name(node), "gloo:all_reduce"); });
  }
}

TEST(ComposeTest, WeightsSpreadPartsEvenly) {
  const Composed composed = ComposeStep(
      "[[part]]\nweight = 2\nselect = { op = \"aten::relu\" }\n"
      "[[part]]\nweight = 1\nselect = { op = \"aten::mm\" }\n");
  EXPECT_EQ(Runs(composed.trace), (Names{"aten::relu", "aten::mm", "aten::relu"}));
  EXPECT_EQ(composed.composition.expected(), Nanos{40});
}

TEST(ComposeTest, OfSeveralStepsTheTypicalOneIsTakenUnlessTheRecipeSays) {
  const Trace trace = TraceOf({
      {10, "ProfilerStep#1", 2, 0, 90},
      {11, "aten::relu", 10, 10, 80, {{kInput}}, {{kHidden}}},
      {20, "ProfilerStep#2", 2, 100, 50},
      {21, "aten::relu", 20, 110, 40, {{kInput}}, {{kHidden}}},
      {30, "ProfilerStep#3", 2, 200, 40},
      {31, "aten::relu", 30, 210, 30, {{kInput}}, {{kHidden}}},
  });
  const Composed typical = ComposeOf("[[part]]\n", {&trace}).value();
  EXPECT_EQ(typical.composition.parts[0].step, "ProfilerStep#2");
  EXPECT_EQ(typical.composition.expected(), Nanos{40});
  const Composed two = ComposeOf("[[part]]\nselect = { step = \"2..4\" }\n", {&trace}).value();
  EXPECT_EQ(two.composition.expected(), Nanos{70});
  const RecordedStep step = RecordedStep::Select(two.trace, "").value();
  EXPECT_EQ(step.mark_count(), 1u);
  EXPECT_EQ(two.trace.duration(step.mark()), Nanos{140});
  const Composed all = ComposeOf("[[part]]\nselect = { step = \"..\" }\n", {&trace}).value();
  EXPECT_EQ(all.composition.operators(), 3);
}

TEST(ComposeTest, AStepEndsWithItsMarkThoughGlooEndsALabelLater) {
  const Trace step = TraceOf({
      {10, "ProfilerStep#4", 2, 100, 100},
      {11, "c10d::allreduce_", 10, 110, 10, {{kInput}}, {{kInput}}},
      {12, "gloo:all_reduce", 2, 125, 105, {{kInput}}, {}, 11},
  });
  const auto composed = ComposeOf("[[part]]\ntrace = \"t0\"\nrepeat = 2\n", {&step});
  const Trace& trace = composed.value().trace;
  std::vector<std::pair<int64_t, int64_t>> labels;
  ForEachNode(trace, [&](NodeId node) {
    if (IsStepMark(trace.name(node))) {
      EXPECT_EQ(trace.duration(node), Nanos{200});
    }
    if (trace.name(node) != "gloo:all_reduce") return;
    labels.emplace_back(trace.start(node)->count, trace.duration(node)->count);
  });
  EXPECT_EQ(labels, (std::vector<std::pair<int64_t, int64_t>>{{25, 105}, {125, 105}}));
}

TEST(ComposeTest, WithoutBeginningsDurationsAreKnownWithoutCallees) {
  const Trace step = Step();
  const Trace untimed = TraceOf(
      {{10, "ProfilerStep#4", 2, {}, {}}, {11, "aten::relu", 10, {}, {}, {{kInput}}, {{kHidden}}}});
  const auto composed =
      ComposeOf("[[part]]\ntrace = \"t0\"\n[[part]]\ntrace = \"t1\"\n", {&step, &untimed});
  const Trace& trace = composed.value().trace;
  int64_t own = 0;
  ForEachNode(trace, [&](NodeId node) {
    EXPECT_FALSE(trace.start(node));
    if (trace.duration(node)) own += trace.exclusive(node).value().count;
  });
  EXPECT_EQ(own, 100);
}

TEST(ComposeTest, WithoutTimesNothingIsExpected) {
  const Trace trace = TraceOf({{10, "aten::relu", 2, {}, {}, {{kInput}}, {{kHidden}}}});
  const Composed composed = ComposeOf("[[part]]\nrepeat = 2\n", {&trace}).value();
  EXPECT_EQ(Runs(composed.trace), (Names{"aten::relu", "aten::relu"}));
  EXPECT_EQ(composed.composition.expected(), std::nullopt);
  EXPECT_EQ(composed.composition.untimed(), 2);
}

TEST(ComposeTest, WhatADeviceDoesHasNoExpectedTime) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  builder.AddNode({.source_id = 1,
                   .kind = NodeKind::kOperator,
                   .place = Place::kHost,
                   .name = builder.Intern("aten::mm"),
                   .start = Nanos{10},
                   .duration = Nanos{5},
                   .op_schema = builder.Intern("aten::mm(Tensor x) -> Tensor")});
  builder.AddNode({.source_id = 2,
                   .kind = NodeKind::kKernel,
                   .place = Place::kDevice,
                   .name = builder.Intern("gemm"),
                   .parent = 1,
                   .lane = builder.InternLane({.device = 0, .stream = 7}),
                   .start = Nanos{40},
                   .duration = Nanos{100}});
  const Trace trace = builder.Finish().value();
  const Composed composed =
      ComposeOf("[[part]]\nselect = { stream = 7 }\nrepeat = 2\n", {&trace}).value();
  EXPECT_EQ(Runs(composed.trace), (Names{"aten::mm", "aten::mm"}));
  EXPECT_EQ(composed.composition.expected(), std::nullopt);
  std::vector<Nanos> starts;
  ForEachNode(composed.trace, [&](NodeId node) {
    if (composed.trace.name(node) == "gemm") starts.push_back(*composed.trace.start(node));
  });
  EXPECT_EQ(starts, (std::vector<Nanos>{Nanos{30}, Nanos{35}}));
}

// The main thread continues when another one, which worked for 30 ms, is done.
TEST(ComposeTest, ThreadsOfANativeCaptureWaitForEachOther) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kNative);
  uint64_t id = 0;
  const auto add = [&](const char* thread, int64_t start, int64_t duration) {
    builder.AddNode({.source_id = ++id,
                     .kind = NodeKind::kOperator,
                     .place = Place::kHost,
                     .name = builder.Intern("aten::relu"),
                     .lane = builder.InternLane({.thread = builder.Intern(thread)}),
                     .start = Nanos{start * 1'000'000},
                     .duration = Nanos{duration * 1'000'000},
                     .op_schema = builder.Intern("aten::relu(Tensor x) -> Tensor")});
  };
  add("main", 0, 2);
  add("worker", 1, 30);
  add("main", 32, 1);
  const Trace step = builder.Finish().value();
  const Trace trace = ComposeOf("[[part]]\ntrace = \"t0\"\nrepeat = 2\n", {&step}).value().trace;
  std::vector<std::pair<int64_t, int64_t>> waits;  // by begin, in ms
  ForEachNode(trace, [&](NodeId node) {
    for (const NodeId dep : trace.deps(node)) {
      waits.emplace_back(trace.start(dep)->count / 1'000'000, trace.start(node)->count / 1'000'000);
    }
  });
  EXPECT_EQ(waits, (std::vector<std::pair<int64_t, int64_t>>{{1, 32}, {34, 65}}));
}

TEST(ComposeTest, ATraceSaysWhatItIsComposedOf) {
  const Composed composed = ComposeStep("[[part]]\nname = \"all\"\nrepeat = 2\n");
  const std::optional<Composition> kept = CompositionOf(composed.trace);
  ASSERT_TRUE(kept);
  EXPECT_EQ(CompositionJson(*kept), CompositionJson(composed.composition));
  EXPECT_EQ(kept->expected(), Nanos{120});
  EXPECT_FALSE(CompositionOf(Step()));
  EXPECT_EQ(kept->threads, std::nullopt);
  const Trace trace = Step();
  const Recipe recipe = ParseRecipe("[traces]\na = \"a\"\n[[part]]\n", "r").value();
  const std::vector<ComposeInput> inputs = {{.trace = &trace, .name = "a", .threads = 4}};
  EXPECT_EQ(CompositionOf(Compose(recipe, inputs, {}).value().trace)->threads, 4);
}

TEST(ComposeTest, SelectionsThatMeanNothingAreRefusedWithTheirPlace) {
  const auto refuses = [](const std::string& parts, const std::string& message) {
    EXPECT_NE(ComposeError(parts).find(message), std::string::npos) << ComposeError(parts);
  };
  refuses("[[part]]\nselect = { op = \"aten::liner\" }\n",
          "r.toml:4:10: t0.json: op aten::liner: the trace has no node of this name; did you mean "
          "'aten::linear'?");
  refuses("[[part]]\nselect = { phase = \"backwards\" }\n", "did you mean 'backward'?");
  refuses("[[part]]\nselect = { label = \"evaluate\", op = \"aten::relu\" }\n",
          "no node matches all");
  refuses("[[part]]\ndrop = { comm = true }\n", "comm: the trace has no communication");
  refuses("[[part]]\nselect = { op = \"aten::mm\" }\ndrop = { op = \"aten::relu\" }\n",
          "r.toml:5:8: t0.json: drop: found no matching operator in the part");
  refuses("[[part]]\ndrop = { op = \"*\" }\n", "found no operator to run among the selected nodes");
  refuses(
      "[[part]]\nreplace = { op = \"aten::rellu\", with = \"a::b\" }\n",
      "replace: op aten::rellu: the trace has no node of this name; did you mean 'aten::relu'?");
  refuses(
      "[[part]]\nselect = { op = \"aten::mm\" }\n"
      "replace = { op = \"aten::relu\", with = \"a::b\" }\n",
      "replace: op aten::relu: found no such operator in the part");
}

TEST(ComposeTest, NodesAreLimited) {
  const Trace trace = Step();
  const Recipe recipe = ParseRecipe("[traces]\na = \"a\"\n[[part]]\nrepeat = 1000\n", "r").value();
  const std::vector<ComposeInput> inputs = {{.trace = &trace, .name = "a"}};
  const Result<Composed> composed = Compose(recipe, inputs, {.nodes = 1000});
  ASSERT_FALSE(composed);
  EXPECT_NE(composed.error().message.find("limit 'nodes'"), std::string::npos);
}

TEST(PartClockTest, LeavesOutWhatIsNotKept) {
  const auto ns = [](int64_t count) { return Nanos{count}; };
  const PartClock clock({ns(100), ns(200)}, {{ns(90), ns(110)}, {ns(130), ns(160)}},
                        {{ns(140), ns(150)}});
  EXPECT_EQ(clock.At(ns(0)), ns(0));
  EXPECT_EQ(clock.At(ns(110)), ns(0));
  EXPECT_EQ(clock.At(ns(120)), ns(10));
  EXPECT_EQ(clock.At(ns(135)), ns(20));
  EXPECT_EQ(clock.At(ns(145)), ns(25));
  EXPECT_EQ(clock.At(ns(155)), ns(30));
  EXPECT_EQ(clock.length(), ns(70));
  EXPECT_EQ(clock.At(ns(900)), ns(70));
}

}  // namespace
}  // namespace etude
