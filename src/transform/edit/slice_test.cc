#include "src/transform/edit/slice.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "src/trace/carried_stats.h"
#include "src/trace/trace_builder.h"
#include "src/trace/validator.h"

namespace etude {
namespace {

using Ids = std::set<uint64_t>;

struct Planted {
  uint64_t id;
  std::string name;
  NodeKind kind = NodeKind::kOperator;
  std::optional<uint64_t> parent;
  std::optional<int64_t> start;
  std::optional<int64_t> duration;
  std::string thread = "main";
  int32_t stream = -1;  // -1: on the host
  std::vector<uint64_t> deps;
};

Trace Make(const std::vector<Planted>& nodes) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  for (const Planted& planted : nodes) {
    NodeRow row;
    row.source_id = planted.id;
    row.name = builder.Intern(planted.name);
    row.kind = planted.kind;
    row.place = planted.stream < 0 ? Place::kHost : Place::kDevice;
    row.parent = planted.parent;
    if (planted.start) row.start = Nanos{*planted.start};
    if (planted.duration) row.duration = Nanos{*planted.duration};
    Lane lane{.device = planted.stream < 0 ? -1 : 0, .stream = planted.stream};
    if (planted.stream < 0) lane.thread = builder.Intern(planted.thread);
    row.lane = builder.InternLane(lane);
    const NodeId node = builder.AddNode(row);
    for (const uint64_t dep : planted.deps) builder.AddDep(node, dep, DepKind::kData);
  }
  return builder.Finish().value();
}

// Two steps of 100 ns on a main thread, backward on another, kernels on streams 7 and 8.
Trace TwoSteps() {
  return Make({
      {.id = 1, .name = "process", .kind = NodeKind::kProcess},
      {.id = 2, .name = "thread", .kind = NodeKind::kThread, .parent = 1},
      {.id = 3, .name = "thread", .kind = NodeKind::kThread, .parent = 1, .thread = "autograd"},
      {.id = 10,
       .name = "ProfilerStep#4",
       .kind = NodeKind::kLabel,
       .parent = 2,
       .start = 0,
       .duration = 100},
      {.id = 11,
       .name = "forward",
       .kind = NodeKind::kLabel,
       .parent = 10,
       .start = 0,
       .duration = 50},
      {.id = 12, .name = "aten::linear", .parent = 11, .start = 5, .duration = 20},
      {.id = 13, .name = "aten::addmm", .parent = 12, .start = 10, .duration = 10},
      {.id = 14,
       .name = "gemm",
       .kind = NodeKind::kKernel,
       .parent = 13,
       .start = 120,
       .duration = 30,
       .stream = 7},
      {.id = 15, .name = "aten::relu", .parent = 11, .start = 30, .duration = 5, .deps = {12}},
      {.id = 20,
       .name = "MmBackward0",
       .kind = NodeKind::kLabel,
       .parent = 3,
       .start = 60,
       .duration = 30,
       .thread = "autograd",
       .deps = {15}},
      {.id = 21,
       .name = "aten::mm",
       .parent = 20,
       .start = 65,
       .duration = 20,
       .thread = "autograd"},
      {.id = 22,
       .name = "gemm_t",
       .kind = NodeKind::kKernel,
       .parent = 21,
       .start = 160,
       .duration = 20,
       .stream = 8,
       .deps = {14}},
      {.id = 30,
       .name = "ProfilerStep#5",
       .kind = NodeKind::kLabel,
       .parent = 2,
       .start = 100,
       .duration = 100},
      {.id = 31, .name = "aten::mm", .parent = 30, .start = 110, .duration = 10, .deps = {21}},
  });
}

Ids IdsOf(const Trace& trace) {
  Ids ids;
  ForEachNode(trace, [&](NodeId node) { ids.insert(trace.source_id(node)); });
  return ids;
}

SliceResult SliceOf(const Trace& trace, const Selection& selection) {
  auto result = Slice(trace, selection, {});
  EXPECT_TRUE(result.has_value()) << result.error().message;
  EXPECT_TRUE(IsValid(Validate(result->trace)));
  return *std::move(result);
}

TEST(Slice, KeepsWhatIsBelowALabelAndWhatIsAboveIt) {
  const SliceResult slice = SliceOf(TwoSteps(), {.labels = {"forw"}});
  EXPECT_EQ(IdsOf(slice.trace), (Ids{1, 2, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(slice.selected, 5u);
  EXPECT_EQ(slice.around, 3u);
  EXPECT_EQ(slice.cut_dependencies, 0u);
  const NodeId relu = slice.trace.Find(15);
  ASSERT_EQ(slice.trace.deps(relu).size(), 1u);
  EXPECT_EQ(slice.trace.source_id(slice.trace.deps(relu)[0]), 12u);
}

TEST(Slice, APhaseHasWhatItsLabelsSayAndWhatWasLaunchedInIt) {
  TraceBuilder builder;
  const auto add = [&](uint64_t id, const std::string& name, NodeKind kind, uint64_t parent) {
    builder.AddNode({.source_id = id,
                     .kind = kind,
                     .place = kind == NodeKind::kKernel ? Place::kDevice : Place::kHost,
                     .name = builder.Intern(name),
                     .parent = parent});
  };
  builder.AddNode({.source_id = 1, .kind = NodeKind::kThread, .name = builder.Intern("thread")});
  add(2, "ProfilerStep#0", NodeKind::kLabel, 1);
  add(3, "aten::linear", NodeKind::kOperator, 2);
  add(4, "autograd::engine::evaluate_function: Mm", NodeKind::kLabel, 2);
  add(5, "aten::mm", NodeKind::kOperator, 4);
  add(6, "gemm", NodeKind::kKernel, 5);
  add(7, "Optimizer.step#SGD.step", NodeKind::kLabel, 2);
  add(8, "aten::add_", NodeKind::kOperator, 7);
  const Trace trace = builder.Finish().value();
  EXPECT_EQ(IdsOf(SliceOf(trace, {.phases = {"forward"}}).trace), (Ids{1, 2, 3}));
  EXPECT_EQ(IdsOf(SliceOf(trace, {.phases = {"backward"}}).trace), (Ids{1, 2, 4, 5, 6}));
  EXPECT_EQ(IdsOf(SliceOf(trace, {.phases = {"optimizer", "forward"}}).trace),
            (Ids{1, 2, 3, 7, 8}));
  const auto wrong = Slice(trace, {.phases = {"forwards"}}, {});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "--phase forwards: expected forward, backward, optimizer, prefill, decode; did you "
            "mean 'forward'?");
}

TEST(Slice, CommunicationIsNotWhatProgramsCallDuringABackendsLabel) {
  TraceBuilder builder;
  const auto add = [&](uint64_t id, const std::string& name, NodeKind kind, uint64_t parent,
                       const std::string& schema) {
    NodeRow row{.source_id = id, .kind = kind, .name = builder.Intern(name), .parent = parent};
    if (!schema.empty()) row.op_schema = builder.Intern(schema);
    builder.AddNode(row);
  };
  builder.AddNode({.source_id = 1, .kind = NodeKind::kThread, .name = builder.Intern("thread")});
  add(2, "c10d::allreduce_", NodeKind::kOperator, 1, "c10d::allreduce_(Tensor[] x) -> Tensor[]");
  add(3, "gloo:all_reduce", NodeKind::kCollective, 2, "");
  add(4, "ReluBackward0", NodeKind::kLabel, 3, "");
  add(5, "aten::relu", NodeKind::kOperator, 4, "aten::relu(Tensor x) -> Tensor");
  add(6, "_c10d_functional::wait_tensor", NodeKind::kOperator, 1,
      "_c10d_functional::wait_tensor(Tensor x) -> Tensor");
  const Trace trace = builder.Finish().value();
  EXPECT_EQ(IdsOf(SliceOf(trace, {.communication = true}).trace), (Ids{1, 2, 3, 6}));
}

TEST(Slice, StepsOfARange) {
  EXPECT_EQ(IdsOf(SliceOf(TwoSteps(), {.steps = {"5.."}}).trace), (Ids{1, 2, 30, 31}));
  EXPECT_TRUE(SliceOf(TwoSteps(), {.steps = {"0..6"}}).trace.Find(13));
  EXPECT_FALSE(SliceOf(TwoSteps(), {.steps = {"..5"}}).trace.Find(31));
  for (const char* none : {"6..", "..", "5..5", "a..b", "3..4"}) {
    EXPECT_EQ(Slice(TwoSteps(), {.steps = {none}}, {}).has_value(), std::string(none) == "..");
  }
}

TEST(Slice, AStepHasWhatRanInItAndWhatItLaunched) {
  const SliceResult first = SliceOf(TwoSteps(), {.steps = {"4"}});
  EXPECT_EQ(IdsOf(first.trace), (Ids{1, 2, 3, 10, 11, 12, 13, 14, 15, 20, 21, 22}));
  const SliceResult second = SliceOf(TwoSteps(), {.steps = {"ProfilerStep#5"}});
  EXPECT_EQ(IdsOf(second.trace), (Ids{1, 2, 30, 31}));
  EXPECT_EQ(second.cut_dependencies, 1u);
}

TEST(Slice, StepsWithoutTimesAreRangesOfIds) {
  const Trace trace = Make({
      {.id = 1, .name = "process", .kind = NodeKind::kProcess},
      {.id = 2, .name = "ProfilerStep#1", .kind = NodeKind::kLabel, .parent = 1},
      {.id = 3, .name = "aten::mm", .parent = 1},
      {.id = 4, .name = "ProfilerStep#2", .kind = NodeKind::kLabel, .parent = 1},
      {.id = 5, .name = "aten::mm", .parent = 1},
  });
  EXPECT_EQ(IdsOf(SliceOf(trace, {.steps = {"1"}}).trace), (Ids{1, 2, 3}));
  EXPECT_EQ(IdsOf(SliceOf(trace, {.steps = {"2"}}).trace), (Ids{1, 4, 5}));
  EXPECT_EQ(IdsOf(SliceOf(trace, {.steps = {"1", "2"}}).trace), (Ids{1, 2, 3, 4, 5}));
}

TEST(Slice, DifferentKindsMustAllHold) {
  const SliceResult slice = SliceOf(TwoSteps(), {.steps = {"4"}, .operators = {"aten::mm"}});
  EXPECT_EQ(IdsOf(slice.trace), (Ids{1, 3, 20, 21, 22}));
  EXPECT_EQ(slice.selected, 2u);
  EXPECT_EQ(slice.cut_dependencies, 2u) << "20 waited for 15, 22 for 14";
}

TEST(Slice, AStreamHasNothingButItsWorkAndWhatIsAbove) {
  const SliceResult slice = SliceOf(TwoSteps(), {.streams = {"0:7"}});
  EXPECT_EQ(IdsOf(slice.trace), (Ids{1, 2, 10, 11, 12, 13, 14}));
  EXPECT_EQ(slice.selected, 1u);
}

TEST(Slice, AThreadHasWhatItLaunched) {
  const SliceResult slice = SliceOf(TwoSteps(), {.threads = {"autograd"}});
  EXPECT_EQ(IdsOf(slice.trace), (Ids{1, 3, 20, 21, 22}));
}

TEST(Slice, TimesCountFromTheBeginAndTouchingIsNotOverlapping) {
  // 13 ran 10–20, 15 30–35; running nodes that began earlier are included.
  const SliceResult slice = SliceOf(TwoSteps(), {.times = {"20ns..30ns"}});
  EXPECT_EQ(IdsOf(slice.trace), (Ids{1, 2, 10, 11, 12}));
  EXPECT_EQ(slice.untimed, 3u);
  const SliceResult late = SliceOf(TwoSteps(), {.times = {"155ns.."}});
  EXPECT_EQ(IdsOf(late.trace), (Ids{1, 2, 3, 20, 21, 22, 30}));
}

TEST(Slice, LaunchedWorkIsFoundByCorrelation) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kKineto);
  NodeRow row{.source_id = 0, .kind = NodeKind::kOperator, .place = Place::kHost};
  row.name = builder.Intern("aten::mm");
  builder.AddNode(row);
  row = {.source_id = 1, .kind = NodeKind::kRuntime, .place = Place::kHost, .parent = 0};
  row.name = builder.Intern("cudaLaunchKernel");
  row.correlation = 9;
  builder.AddNode(row);
  row = {.source_id = 2, .kind = NodeKind::kKernel, .place = Place::kDevice};
  row.name = builder.Intern("gemm");
  row.correlation = 9;
  builder.AddNode(row);
  row.source_id = 3;
  row.correlation = 10;
  builder.AddNode(row);
  const Trace trace = builder.Finish().value();
  EXPECT_EQ(IdsOf(SliceOf(trace, {.operators = {"aten::*"}}).trace), (Ids{0, 1, 2}));
}

TEST(Slice, ModulesAreLabelsOrPaths) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kKineto);
  NodeRow row{.source_id = 0, .kind = NodeKind::kLabel, .place = Place::kHost};
  row.name = builder.Intern("nn.Module: Linear_0");
  builder.AddNode(row);
  row = {.source_id = 1, .kind = NodeKind::kOperator, .place = Place::kHost, .parent = 0};
  row.name = builder.Intern("aten::mm");
  builder.AddNode(row);
  row = {.source_id = 2, .kind = NodeKind::kOperator, .place = Place::kHost};
  row.name = builder.Intern("aten::relu");
  const NodeId relu = builder.AddNode(row);
  builder.AddExtra(relu, {.key = builder.Intern("Module Hierarchy"),
                          .text = builder.Intern("\"A(Net)::forward.act(ReLU)::forward\"")});
  const Trace trace = builder.Finish().value();
  EXPECT_EQ(IdsOf(SliceOf(trace, {.modules = {"Linear"}}).trace), (Ids{0, 1}));
  EXPECT_EQ(IdsOf(SliceOf(trace, {.modules = {"Linear_0"}}).trace), (Ids{0, 1}));
  EXPECT_EQ(IdsOf(SliceOf(trace, {.modules = {"ReLU"}}).trace), (Ids{2}));
  EXPECT_EQ(IdsOf(SliceOf(trace, {.modules = {"act", "Linear"}}).trace), (Ids{0, 1, 2}));
}

TEST(Slice, ModulesOfTheNativeRecorderHavePathsAndClasses) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kNative);
  const auto add = [&](uint64_t id, NodeKind kind, std::string_view name, uint64_t parent) {
    builder.AddNode({.source_id = id,
                     .kind = kind,
                     .place = Place::kHost,
                     .name = builder.Intern(name),
                     .parent = parent});
  };
  builder.AddNode({.source_id = 0, .kind = NodeKind::kThread, .name = builder.Intern("thread")});
  add(1, NodeKind::kLabel, "nn.Module: Net", 0);
  add(2, NodeKind::kLabel, "nn.Module: Net.layers.0 (Block)", 1);
  add(3, NodeKind::kLabel, "nn.Module: Net.layers.0.fc (Linear)", 2);
  add(4, NodeKind::kOperator, "aten::linear", 3);
  add(5, NodeKind::kLabel, "nn.Module: Net.layers.01 (Linear)", 1);
  const Trace trace = builder.Finish().value();
  const auto ids = [&](std::string word) {
    return IdsOf(SliceOf(trace, {.modules = {std::move(word)}}).trace);
  };
  const Ids whole = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(ids("Net"), whole);
  EXPECT_EQ(ids("layers"), (Ids{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(ids("Net.layers.0"), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(ids("layers.0"), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(ids("Block"), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(ids("layers.0.fc"), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(ids("layers.01"), (Ids{0, 1, 5}));
  EXPECT_EQ(ids("Linear"), (Ids{0, 1, 2, 3, 4, 5}));
}

TEST(Slice, DanglingReferencesAndSharedIdsDoNotSpoilTheSlice) {
  const Trace trace = Make({
      {.id = 1, .name = "a"},
      {.id = 1, .name = "b", .deps = {77}},
      {.id = 2, .name = "b", .parent = 1},
  });
  const SliceResult slice = SliceOf(trace, {.operators = {"b"}});
  EXPECT_TRUE(slice.renumbered);
  EXPECT_EQ(IdsOf(slice.trace), (Ids{0, 1, 2}));
  EXPECT_EQ(slice.dangling, 1u);
  EXPECT_EQ(CarriedStats(slice.trace)[Stat::kRenumberedId], 1u);
}

struct Wrong {
  Selection selection;
  std::string message;
};

TEST(Slice, WhatIsNotThereIsNamedWithTheNearest) {
  const Trace trace = TwoSteps();
  for (const Wrong& wrong : std::vector<Wrong>{
           {{.labels = {"forwrad"}}, "did you mean 'forward'?"},
           {{.steps = {"6"}}, "it has ProfilerStep#4, ProfilerStep#5"},
           {{.threads = {"autograt"}}, "did you mean 'autograd'?"},
           {{.streams = {"0:9"}}, "did you mean '0:7'?"},
           {{.modules = {"Linear"}}, "has no module names"},
           {{.operators = {"aten::mn"}}, "did you mean 'aten::mm'?"},
           {{.times = {"1s..2s"}}, "nothing ran in this range"},
           {{.times = {"5ns"}}, "expected FROM..TO"},
           {{.times = {"5ns..1ns"}}, "expected FROM..TO"},
           {{.times = {"1..2"}}, "with units"},
           {{.steps = {"5"}, .threads = {"autograd"}}, "no node matches all selectors"},
       }) {
    const auto result = Slice(trace, wrong.selection, {});
    ASSERT_FALSE(result.has_value()) << wrong.message;
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
    EXPECT_NE(result.error().message.find(wrong.message), std::string::npos)
        << result.error().message;
  }
}

TEST(Slice, StepsThatAreThereAreNamedInTheOrderOfTheirNumbers) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  for (const uint64_t step : std::initializer_list<uint64_t>{1, 2, 9, 10, 11, 100}) {
    builder.AddNode({.source_id = step,
                     .kind = NodeKind::kLabel,
                     .place = Place::kHost,
                     .name = builder.Intern("ProfilerStep#" + std::to_string(step))});
  }
  const auto result = Slice(builder.Finish().value(), {.steps = {"3"}}, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message,
            "--step 3: the trace has no such step; it has ProfilerStep#1, ProfilerStep#2, "
            "ProfilerStep#9, ProfilerStep#10, ProfilerStep#11, …");
}

TEST(Slice, ManyMarksOfOneNameTakeNoLonger) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  for (uint64_t i = 0; i < 100'000; ++i) {
    NodeRow row{.source_id = i, .kind = NodeKind::kLabel, .place = Place::kHost};
    row.name = builder.Intern("ProfilerStep#1");
    row.start = Nanos{static_cast<int64_t>(i)};
    row.duration = Nanos{5};
    builder.AddNode(row);
  }
  EXPECT_EQ(SliceOf(builder.Finish().value(), {.steps = {"1"}}).selected, 100'000u);
}

}  // namespace
}  // namespace etude
