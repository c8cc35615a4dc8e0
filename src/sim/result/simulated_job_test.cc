#include "src/sim/result/simulated_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "src/sim/program/workload.h"
#include "src/sim/testing/sim_testing.h"
#include "src/trace/job/test_job.h"
#include "src/trace/simulated.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

SimMachine JobRing(int64_t npus) {
  return testing_sim::MachineOf({{.npus = npus, .bandwidth = 50, .latency = 500}},
                                CollectiveAlgorithm::kRing);
}

// Checks that no node begins before its dependencies have ended, and that a lane runs one node at a
// time.
void ExpectSound(const Trace& trace) {
  std::map<LaneId, std::vector<std::pair<int64_t, int64_t>>> lanes;
  ForEachNode(trace, [&](NodeId node) {
    ASSERT_TRUE(trace.start(node) && trace.duration(node));
    const int64_t begin = trace.start(node)->count;
    for (const NodeId dep : trace.deps(node)) {
      EXPECT_GE(begin, trace.start(dep)->count + trace.duration(dep)->count);
    }
    lanes[trace.lane_id(node)].emplace_back(begin, begin + trace.duration(node)->count);
  });
  for (auto& [lane, times] : lanes) {
    std::ranges::sort(times);
    for (size_t i = 1; i < times.size(); ++i) EXPECT_GE(times[i].first, times[i - 1].second);
  }
}

// Two stages of two ranks: 1 ns of computation, 64 bytes from stage to stage (in a ring of four,
// ranks 0 and 2, 1 and 3 are two hops apart), then an all-reduce per stage. Both ranks of a stage
// do the same.
TEST(SimulatedJob, KeepsClassesAndTimes) {
  const Job job = testing_job::TwoStages();
  const SimWorkload workload = WorkloadOfJob(job).value();
  const SimMachine machine = JobRing(4);
  const SimResult result = Simulate(machine, workload).value();
  const Job made = SimulatedJob(job, workload, result).value();
  ASSERT_TRUE(CheckJob(made));
  ASSERT_EQ(made.classes.size(), 2u);
  for (const int64_t rank : {0, 3}) {
    const Trace trace = TraceOfRank(made, rank).value();
    ExpectSound(trace);
    EXPECT_TRUE(trace.traits().exclusive_durations);
    const SimRankResult& times = result.OfRank(rank);
    int64_t end = 0;
    ForEachNode(trace, [&](NodeId node) {
      end = std::max(end, trace.start(node)->count + trace.duration(node)->count);
    });
    EXPECT_EQ(end, times.wall);
  }
  const Trace sender = TraceOfRank(made, 0).value();
  const NodeId send(1);
  EXPECT_EQ(sender.start(send)->count, 1);
  EXPECT_EQ(sender.duration(send)->count, 1001);  // 2 · 500 ns, 64 bytes at 53.7 a ns
  EXPECT_EQ(sender.lane(sender.lane_id(send)).stream, 1);
  const Trace receiver = TraceOfRank(made, 2).value();
  EXPECT_EQ(receiver.start(NodeId(0))->count, 0);
  EXPECT_EQ(receiver.duration(NodeId(0))->count, 1002);
  EXPECT_EQ(receiver.lane(receiver.lane_id(NodeId(0))).stream, 3);

  // Simulate again.
  const SimWorkload again = WorkloadOfJob(made).value();
  const SimResult repeated = Simulate(machine, again).value();
  for (int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(repeated.OfRank(rank).begins, result.OfRank(rank).begins);
    EXPECT_EQ(repeated.OfRank(rank).ends, result.OfRank(rank).ends);
  }
}

// Two computations on host threads; the second depends on an all-reduce of the first one's thread.
// Simulated on the device, they keep their threads.
TEST(SimulatedJob, AHostThatComputesKeepsItsThreads) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kChakra);
  builder.info().traits.exclusive_durations = true;
  StateHostComputes(builder);
  const auto add = [&](uint64_t id, NodeKind kind, std::string_view thread) {
    NodeRow row{.source_id = id, .kind = kind, .place = Place::kHost};
    row.duration = Nanos{1000};
    if (!thread.empty()) row.lane = builder.InternLane({.thread = builder.Intern(thread)});
    return builder.AddNode(row);
  };
  const NodeId first = add(0, NodeKind::kOperator, "host");
  const NodeId reduce = add(1, NodeKind::kCollective, "");
  builder.SetComm(reduce, {.type = CollectiveType::kAllReduce, .bytes = Bytes{64}});
  const NodeId second = add(2, NodeKind::kLabel, "host 2");
  builder.AddDep(reduce, first, DepKind::kData);
  builder.AddDep(second, reduce, DepKind::kData);
  const Trace trace = builder.Finish().value();

  const SimRank rank = MakeSimRank(trace).value();
  for (const SimNode& node : rank.program->nodes) EXPECT_FALSE(node.on_host);
  const SimWorkload workload{.ranks = {rank, rank}, .groups = {}};
  const SimResult result = Simulate(JobRing(2), workload).value();
  const Trace made = SimulatedTrace(trace, *rank.program, result.OfRank(1)).value();
  ExpectSound(made);
  EXPECT_TRUE(IsSimulated(made));
  EXPECT_TRUE(HostComputes(made));
  const auto thread = [&](NodeId node) { return made.text(made.lane(made.lane_id(node)).thread); };
  EXPECT_EQ(thread(first), "host");
  EXPECT_EQ(thread(reduce), "communication");
  EXPECT_EQ(thread(second), "host 2");
  EXPECT_EQ(made.kind(second), NodeKind::kLabel);
  ForEachNode(made, [&](NodeId node) { EXPECT_EQ(made.place(node), Place::kHost); });

  // Simulate again.
  const SimRank again = MakeSimRank(made).value();
  const SimResult repeated = Simulate(JobRing(2), {.ranks = {again, again}, .groups = {}}).value();
  EXPECT_EQ(repeated.OfRank(1).begins, result.OfRank(1).begins);
  EXPECT_EQ(repeated.OfRank(1).ends, result.OfRank(1).ends);
}

TEST(SimulatedJob, SaysThatItIs) {
  const Job job = testing_job::TwoStages();
  const SimWorkload workload = WorkloadOfJob(job).value();
  const SimResult result = Simulate(JobRing(4), workload).value();
  EXPECT_FALSE(IsSimulated(TraceOfRank(job, 0).value()));
  const Trace trace = TraceOfRank(SimulatedJob(job, workload, result).value(), 0).value();
  EXPECT_TRUE(IsSimulated(trace));
  EXPECT_FALSE(HostComputes(trace));
  // Added once, also for a job that is simulated again.
  const SimRank rank = MakeSimRank(trace).value();
  const Trace again = SimulatedTrace(trace, *rank.program, result.OfRank(0)).value();
  EXPECT_TRUE(IsSimulated(again));
  EXPECT_EQ(again.info().extras.size(), trace.info().extras.size());
}

// Ranks of one class with different simulated times form separate classes.
TEST(SimulatedJob, SplitsClasses) {
  const Job job = testing_job::TwoStages();
  const SimWorkload workload = WorkloadOfJob(job).value();
  SimResult result = Simulate(JobRing(4), workload, {.by_class = false}).value();
  ASSERT_EQ(result.ranks.size(), 4u);
  EXPECT_EQ(SimulatedJob(job, workload, result)->classes.size(), 2u);
  result.ranks[3].ends.back() += 5;
  const Job made = SimulatedJob(job, workload, result).value();
  ASSERT_EQ(made.classes.size(), 3u);
  ASSERT_TRUE(CheckJob(made));
  for (int64_t rank = 0; rank < 4; ++rank) {
    const Trace trace = TraceOfRank(made, rank).value();
    const NodeId last = NodeId::FromIndex(trace.node_count() - 1);
    EXPECT_EQ(trace.start(last)->count + trace.duration(last)->count,
              result.OfRank(rank).ends.back());
  }
}

// Nodes that never began, or never ended, have no times.
TEST(SimulatedJob, WhatDidNotRunHasNoTimes) {
  const Job job = testing_job::TwoStages();
  const SimWorkload workload = WorkloadOfJob(job).value();
  SimResult result = Simulate(JobRing(4), workload).value();
  SimRankResult& times = result.ranks[result.class_of[0]];
  times.ends.back() = -1;
  const Trace trace = TraceOfRank(SimulatedJob(job, workload, result).value(), 0).value();
  const NodeId last = NodeId::FromIndex(trace.node_count() - 1);
  EXPECT_FALSE(trace.start(last));
  EXPECT_FALSE(trace.duration(last));
  EXPECT_TRUE(trace.start(NodeId(0)));
}

}  // namespace
}  // namespace etude
