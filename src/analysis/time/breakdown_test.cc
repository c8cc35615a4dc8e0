#include "src/analysis/time/breakdown.h"

#include <gtest/gtest.h>

#include "src/run/planted_trace.h"
#include "src/trace/simulated.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using testing_support::PlantedTrace;
using testing_support::Us;

// Checks the invariants of a breakdown.
void ExpectWhole(const TimeShares& times) {
  EXPECT_EQ(times.window,
            times.compute + times.exposed_communication + times.exposed_copies + times.idle);
  if (times.reasons) {
    EXPECT_EQ(times.idle,
              times.reasons->host_wait + times.reasons->kernel_wait + times.reasons->other);
  }
}

TEST(Breakdown, NothingToBreakDown) {
  const Breakdown breakdown = BreakDown(PlantedTrace().Read());
  EXPECT_FALSE(breakdown.whole);
  EXPECT_TRUE(breakdown.steps.empty());
  EXPECT_TRUE(breakdown.streams.empty());
}

TEST(Breakdown, OneKernel) {
  const Breakdown breakdown =
      BreakDown(PlantedTrace().Launch(1, 0, 5, 7).Kernel("gemm", 20, 10, 40, 7).Read());
  ASSERT_TRUE(breakdown.whole && breakdown.on_device);
  EXPECT_EQ(breakdown.whole->window, Us(30));
  EXPECT_EQ(breakdown.whole->compute, Us(30));
  EXPECT_EQ(breakdown.whole->idle, Us(0));
  EXPECT_EQ(breakdown.unlaunched, 0u);
}

// An operator of 3 µs, and 2 µs of a step's mark besides: if durations exclude callees, a mark is
// not a step.
TEST(Breakdown, AHostThatComputesDoesSoInLabels) {
  for (const bool computes : {false, true}) {
    TraceBuilder builder;
    builder.info().traits.exclusive_durations = true;
    if (computes) StateHostComputes(builder);
    NodeRow row{.place = Place::kHost};
    row.lane = builder.InternLane({.thread = builder.Intern("host")});
    row.kind = NodeKind::kLabel;
    row.name = builder.Intern("ProfilerStep#1");
    row.start = Us(0);
    row.duration = Us(2);
    builder.AddNode(row);
    row.source_id = 1;
    row.kind = NodeKind::kOperator;
    row.name = builder.Intern("aten::mm");
    row.start = Us(2);
    row.duration = Us(3);
    builder.AddNode(row);
    const Trace trace = builder.Finish().value();
    const Breakdown breakdown = BreakDown(trace);
    EXPECT_FALSE(breakdown.on_device);
    EXPECT_TRUE(breakdown.steps.empty());
    EXPECT_EQ(breakdown.whole->compute, Us(computes ? 5 : 3));
    EXPECT_EQ(breakdown.whole->idle, Us(0));
  }
}

// Stream 20: gemm [100,200), relu [220,260). Stream 30: all-reduce [180,300). Stream 40: copies
// [150,160) and [290,330).
PlantedTrace Overlapping() {
  return PlantedTrace()
      .Launch(1, 50, 55, 1)
      .Kernel("gemm", 20, 100, 200, 1)
      .Launch(1, 60, 65, 2)
      .Kernel("relu", 20, 220, 260, 2)
      .Launch(1, 70, 75, 3)
      .Kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 30, 180, 300, 3)
      .Call("cudaMemcpyAsync", 1, 80, 85, 4)
      .OnDevice("gpu_memcpy", "Memcpy HtoD", 40, 150, 160, 4, "")
      .Call("cudaMemcpyAsync", 1, 86, 89, 5)
      .OnDevice("gpu_memcpy", "Memcpy DtoH", 40, 290, 330, 5, "");
}

TEST(Breakdown, WhatOverlapsCountsOnceAndExposedIsWithoutTheStronger) {
  const Breakdown breakdown = BreakDown(Overlapping().Read());
  const TimeShares& whole = *breakdown.whole;
  EXPECT_EQ(whole.window, Us(230));
  EXPECT_EQ(whole.compute, Us(140));
  EXPECT_EQ(whole.communication, Us(120));
  EXPECT_EQ(whole.exposed_communication, Us(20 + 40)) << "[200,220) and [260,300)";
  EXPECT_EQ(whole.copies, Us(50));
  EXPECT_EQ(whole.exposed_copies, Us(30)) << "[300,330)";
  EXPECT_EQ(whole.idle, Us(0));
  ExpectWhole(whole);
  ASSERT_EQ(breakdown.streams.size(), 3u);
  EXPECT_EQ(breakdown.streams[0].times.window, Us(160));
  EXPECT_EQ(breakdown.streams[0].times.idle, Us(20)) << "[200,220)";
  EXPECT_EQ(breakdown.streams[0].times.reasons->kernel_wait, Us(20)) << "launched long before";
  EXPECT_EQ(breakdown.streams[2].times.reasons->other, Us(130)) << "[160,290), launched at 86";
  for (const Breakdown::Stream& stream : breakdown.streams) ExpectWhole(stream.times);
}

TEST(Breakdown, IdleForThreeReasons) {
  const Breakdown breakdown = BreakDown(PlantedTrace()
                                            .Launch(1, 0, 5, 1)
                                            .Kernel("a", 20, 100, 200, 1)
                                            .Launch(1, 10, 15, 2)
                                            .Kernel("b", 20, 210, 300, 2)  // 10 µs after a
                                            .Launch(1, 20, 25, 3)
                                            .Kernel("c", 20, 400, 500, 3)  // waited for something
                                            .Launch(1, 510, 515, 4)
                                            .Kernel("d", 20, 530, 600, 4)   // launched too late
                                            .Kernel("e", 20, 605, 610, 99)  // no launch
                                            .Read());
  const TimeShares& whole = *breakdown.whole;
  EXPECT_EQ(whole.idle, Us(10 + 100 + 30 + 5));
  EXPECT_EQ(whole.reasons->kernel_wait, Us(10));
  EXPECT_EQ(whole.reasons->other, Us(100 + 5));
  EXPECT_EQ(whole.reasons->host_wait, Us(30));
  EXPECT_EQ(breakdown.unlaunched, 1u);
  ExpectWhole(whole);
}

TEST(Breakdown, AStepLastsUntilItsWorkIsDone) {
  const Trace trace = PlantedTrace()
                          .Label("ProfilerStep#3", 1, 0, 100)
                          .Label("ProfilerStep#4", 1, 100, 220)
                          .Launch(1, 10, 15, 1)
                          .Kernel("a", 20, 60, 130, 1)
                          .Launch(1, 140, 145, 2)
                          .Kernel("b", 20, 150, 200, 2)
                          .Read();
  const Breakdown breakdown = BreakDown(trace);
  ASSERT_EQ(breakdown.steps.size(), 2u);
  EXPECT_EQ(breakdown.steps[0].name, "ProfilerStep#3");
  EXPECT_EQ(breakdown.steps[0].times.window, Us(130));
  EXPECT_EQ(breakdown.steps[0].times.compute, Us(70)) << "also what runs after the mark";
  EXPECT_EQ(breakdown.steps[0].times.reasons->host_wait, Us(60)) << "before the first launch ends";
  EXPECT_EQ(breakdown.steps[1].times.window, Us(90));
  EXPECT_EQ(breakdown.steps[1].times.compute, Us(50));
  EXPECT_EQ(breakdown.steps[1].times.reasons->host_wait, Us(20 + 20))
      << "[130,150), and [200,220) in which nothing was asked for";
  EXPECT_EQ(breakdown.whole->window, Us(140)) << "of the work, not of the steps";
  for (const Breakdown::Step& step : breakdown.steps) ExpectWhole(step.times);
}

// The program is two steps ahead of the device.
TEST(Breakdown, StepsOfAProgramThatRunsAhead) {
  const Trace trace = PlantedTrace()
                          .Label("ProfilerStep#1", 1, 0, 10)
                          .Label("ProfilerStep#2", 1, 10, 20)
                          .Label("ProfilerStep#3", 1, 20, 30)
                          .Launch(1, 2, 3, 1)
                          .Kernel("a", 20, 5, 100, 1)
                          .Launch(1, 12, 13, 2)
                          .Kernel("b", 20, 100, 200, 2)
                          .Launch(1, 40, 41, 3)
                          .Kernel("after the steps", 20, 200, 230, 3)
                          .Read();
  const Breakdown breakdown = BreakDown(trace);
  ASSERT_EQ(breakdown.steps.size(), 3u);
  EXPECT_EQ(breakdown.steps[0].times.window, Us(100));
  EXPECT_EQ(breakdown.steps[0].times.compute, Us(95));
  EXPECT_EQ(breakdown.steps[1].times.window, Us(100));
  EXPECT_EQ(breakdown.steps[1].times.compute, Us(100));
  EXPECT_EQ(breakdown.steps[2].times.window, Us(0)) << "asked for nothing, over before";
  for (const Breakdown::Step& step : breakdown.steps) ExpectWhole(step.times);
}

TEST(Breakdown, StreamsOfMergedRanksStayApart) {
  TraceBuilder builder;
  for (const std::string_view rank : {"rank 0", "rank 1"}) {
    builder.AddNode(
        {.source_id = builder.node_count(),
         .kind = NodeKind::kKernel,
         .place = Place::kDevice,
         .name = builder.Intern("gemm"),
         .lane = builder.InternLane({.process = builder.Intern(rank), .device = 0, .stream = 7}),
         .start = Us(0),
         .duration = Us(10)});
  }
  const Trace trace = builder.Finish().value();
  const Breakdown breakdown = BreakDown(trace);
  ASSERT_EQ(breakdown.streams.size(), 2u);
  EXPECT_EQ(breakdown.streams[0].process, "rank 0");
  EXPECT_EQ(breakdown.streams[1].process, "rank 1");
  EXPECT_EQ(breakdown.streams[1].count, 1u);
}

// Marks of several ranks in one trace.
TEST(Breakdown, MarksThatOverlapStayAsTheyAre) {
  const Trace trace = PlantedTrace()
                          .Label("ProfilerStep#1", 1, 0, 100)
                          .Label("ProfilerStep#1", 2, 10, 110)
                          .Launch(1, 20, 25, 1)
                          .Kernel("a", 20, 30, 150, 1)
                          .Read();
  const Breakdown breakdown = BreakDown(trace);
  ASSERT_EQ(breakdown.steps.size(), 2u);
  EXPECT_EQ(breakdown.steps[0].times.compute, Us(70));
  EXPECT_EQ(breakdown.steps[1].times.compute, Us(80));
}

TEST(Breakdown, HostThreadsWithoutDevices) {
  // The operator around the communication computes before and after it.
  const Breakdown breakdown = BreakDown(PlantedTrace()
                                            .Operator("aten::mm", 1, 0, 100)
                                            .Operator("aten::add", 1, 20, 40)
                                            .Label("gloo:all_reduce", 2, 80, 200)
                                            .Operator("aten::mul", 1, 150, 170)
                                            .Operator("aten::sum", 1, 230, 250)
                                            .Read());
  ASSERT_TRUE(breakdown.whole);
  EXPECT_FALSE(breakdown.on_device);
  const TimeShares& whole = *breakdown.whole;
  EXPECT_EQ(whole.window, Us(250));
  EXPECT_EQ(whole.compute, Us(100 + 20 + 20));
  EXPECT_EQ(whole.communication, Us(120));
  EXPECT_EQ(whole.exposed_communication, Us(50 + 30)) << "[100,150) and [170,200)";
  EXPECT_EQ(whole.idle, Us(30));
  EXPECT_FALSE(whole.reasons) << "nobody asks threads for work";
  ExpectWhole(whole);
}

// Gloo ends the labels of sends and receives when the program has waited for them.
TEST(Breakdown, WhatRunsBesideASendOfItsThreadComputes) {
  const TimeShares whole = BreakDown(PlantedTrace()
                                         .Operator("c10d::send", 1, 0, 20)
                                         .Label("gloo:send", 1, 10, 200)
                                         .Operator("aten::mm", 1, 30, 150)
                                         .Operator("aten::add", 1, 210, 250)
                                         .Read())
                               .whole.value();
  EXPECT_EQ(whole.compute, Us(20 + 120 + 40));
  EXPECT_EQ(whole.communication, Us(190));
  EXPECT_EQ(whole.exposed_communication, Us(10 + 50)) << "[20,30) and [150,200)";
  EXPECT_EQ(whole.idle, Us(10));
  ExpectWhole(whole);
}

TEST(Breakdown, AnOperatorThatWaitsForAnotherThreadDoesNotCompute) {
  const Trace trace = PlantedTrace()
                          .Operator("backward", 1, 0, 200)
                          .Operator("hook", 1, 10, 20)
                          .Label("gloo:all_reduce", 2, 15, 190)
                          .Operator("aten::copy_", 1, 195, 196)
                          .Read();
  OrderEdge wait;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.name(node) == "aten::copy_") wait.node = node;
    if (trace.name(node) == "gloo:all_reduce") wait.before = node;
  });
  const TimeShares whole = BreakDown(RecordedRun(trace, {wait})).whole.value();
  EXPECT_EQ(whole.compute, Us(20 + 10));
  EXPECT_EQ(whole.exposed_communication, Us(170));
  ExpectWhole(whole);
}

TEST(Breakdown, CommunicationInsideAnOperatorIsNotComputing) {
  const Breakdown breakdown = BreakDown(PlantedTrace()
                                            .Operator("c10d::allreduce_", 1, 0, 100)
                                            .Label("gloo:all_reduce", 1, 10, 90)
                                            .Operator("aten::copy_", 1, 20, 30)
                                            .Read());
  EXPECT_EQ(breakdown.whole->compute, Us(20));
  EXPECT_EQ(breakdown.whole->communication, Us(80));
}

TEST(Breakdown, ACallWhoseLabelIsLostIsNoCommunication) {
  TraceBuilder builder;
  const NodeId node = builder.AddNode({.kind = NodeKind::kCollective,
                                       .place = Place::kHost,
                                       .name = builder.Intern("c10d::allreduce_"),
                                       .start = Us(0),
                                       .duration = Us(5)});
  builder.SetComm(node, {.type = CollectiveType::kAllReduce});
  const Breakdown breakdown = BreakDown(builder.Finish().value());
  EXPECT_EQ(breakdown.whole->compute, Us(5)) << "as of every operator";
  EXPECT_EQ(breakdown.whole->communication, Us(0));
  EXPECT_EQ(breakdown.untimed, 1u) << "the collective";
}

}  // namespace
}  // namespace etude
