#include "src/run/waits/host_times.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

constexpr int64_t kUs = 1000;

// Two threads, times in microseconds.
class Threads {
 public:
  NodeId Add(NodeKind kind, const char* name, int64_t begin, int64_t end, bool elsewhere = false) {
    const StringId thread = builder_.Intern(elsewhere ? "2" : "1");
    return builder_.AddNode({.source_id = next_++,
                             .kind = kind,
                             .place = Place::kHost,
                             .name = builder_.Intern(name),
                             .lane = builder_.InternLane({.thread = thread}),
                             .start = Nanos{begin * kUs},
                             .duration = Nanos{(end - begin) * kUs}});
  }
  void WaitFor(NodeId node, NodeId before) { builder_.AddDep(node, before, DepKind::kSync); }
  Trace Finish() { return builder_.Finish().value(); }

 private:
  TraceBuilder builder_;
  uint64_t next_ = 1;
};

// A label inside which a thread issues a collective and waits, as in FSDP.
struct Gather {
  Threads threads;
  NodeId around = threads.Add(NodeKind::kLabel, "pre_forward", 0, 110);
  NodeId label = threads.Add(NodeKind::kLabel, "all_gather", 5, 100);
  NodeId asks = threads.Add(NodeKind::kOperator, "allgather_", 10, 20);
  NodeId gloo = threads.Add(NodeKind::kCollective, "gloo:all_gather", 15, 90, true);
  NodeId after = threads.Add(NodeKind::kLabel, "copy_out", 104, 109);
  NodeId reads = threads.Add(NodeKind::kOperator, "view", 106, 108);
};

void ExpectGather(const HostTimes& times, const Gather& made) {
  EXPECT_EQ(times.own(made.label), Nanos{(5 + 10) * kUs}) << "before it asks and after the wait";
  EXPECT_EQ(times.own(made.around), Nanos{(5 + 4 + 1) * kUs});
  EXPECT_EQ(times.own(made.asks), Nanos{10 * kUs});
  EXPECT_EQ(times.own(made.gloo), Nanos{75 * kUs});
  EXPECT_EQ(times.own(made.after), Nanos{3 * kUs});
}

TEST(HostTimes, WaitingInALabelThatEndsIsNotItsOwn) {
  Gather made;
  made.threads.WaitFor(made.after, made.gloo);
  const Trace trace = made.threads.Finish();
  const auto times = HostTimes::Find(trace, {});
  ASSERT_TRUE(times);
  ExpectGather(*times, made);
  const TimeSet& waits = times->waits(trace.lane_id(made.label));
  ASSERT_EQ(waits.intervals().size(), 1u);
  EXPECT_EQ(waits.intervals()[0], (Interval{Nanos{20 * kUs}, Nanos{90 * kUs}}));
  EXPECT_TRUE(times->waits(trace.lane_id(made.gloo)).empty());
}

// The wait is that of the label that begins after it, and not of the operator in the label that is
// known to have waited: time of the outer label after the wait is behind it.
TEST(HostTimes, TheFirstLabelAfterTheWaitHasWaited) {
  Gather made;
  made.threads.WaitFor(made.reads, made.gloo);
  const Trace trace = made.threads.Finish();
  const auto times = HostTimes::Find(trace, {});
  ASSERT_TRUE(times);
  EXPECT_EQ(
      std::vector<NodeId>(times->awaited(made.after).begin(), times->awaited(made.after).end()),
      std::vector{made.gloo});
  EXPECT_TRUE(times->awaited(made.reads).empty());
  EXPECT_EQ(times->stretches().woken.at(made.after).time, Nanos{(10 + 4) * kUs});
  ExpectGather(*times, made);
}

TEST(HostTimes, WhatBeginsAfterTheWaitDoesNotHideIt) {
  // Stated for the first operator after the gap, which began in its own label.
  Gather made;
  const Trace trace = made.threads.Finish();
  const OrderEdge wait{.node = made.reads, .before = made.gloo};
  const auto times = HostTimes::Find(trace, std::span(&wait, 1));
  ASSERT_TRUE(times);
  ExpectGather(*times, made);
}

TEST(HostTimes, WaitingBeginsWithTheLastLabelBefore) {
  Threads threads;
  const NodeId around = threads.Add(NodeKind::kOperator, "step", 0, 10'000);
  const NodeId gloo = threads.Add(NodeKind::kCollective, "gloo:all_reduce", 500, 6'000, true);
  const NodeId label = threads.Add(NodeKind::kLabel, "wait", 4'000, 7'000);
  const NodeId next = threads.Add(NodeKind::kOperator, "aten::add", 8'000, 9'000);
  threads.WaitFor(next, gloo);
  const Trace trace = threads.Finish();
  const auto times = HostTimes::Find(trace, {});
  ASSERT_TRUE(times);
  EXPECT_EQ(times->own(around), Nanos{(4'000 + 1'000 + 1'000) * kUs});
  EXPECT_EQ(times->own(label), Nanos{1'000 * kUs});
}

TEST(HostTimes, TimeInLabelsLiesWhereItWas) {
  Threads threads;
  const NodeId step = threads.Add(NodeKind::kLabel, "step", 0, 1'000);
  const NodeId first = threads.Add(NodeKind::kOperator, "first", 100, 150);
  const NodeId inner = threads.Add(NodeKind::kLabel, "inner", 200, 400);
  const NodeId second = threads.Add(NodeKind::kOperator, "second", 300, 350);
  const NodeId gloo = threads.Add(NodeKind::kCollective, "gloo:all_reduce", 310, 700, true);
  const NodeId last = threads.Add(NodeKind::kOperator, "last", 800, 900);
  threads.WaitFor(last, gloo);
  const Trace trace = threads.Finish();
  const auto times = HostTimes::Find(trace, {});
  ASSERT_TRUE(times);
  const HostTimes::Stretches& found = times->stretches();
  ASSERT_EQ(found.ahead.size(), 1u);
  EXPECT_EQ(found.ahead.at(inner).label, step);
  EXPECT_EQ(found.ahead.at(inner).time, Nanos{50 * kUs});
  ASSERT_EQ(found.woken.size(), 1u);
  EXPECT_EQ(found.woken.at(last).label, step);
  EXPECT_EQ(found.woken.at(last).time, Nanos{100 * kUs});
  ASSERT_EQ(found.behind.size(), 1u);
  EXPECT_EQ(found.behind.at(last).time, Nanos{100 * kUs});
  EXPECT_EQ(times->own(step), Nanos{350 * kUs});
  EXPECT_EQ(found.of_label.at(step), Nanos{250 * kUs}) << "but for what is ahead of all";
  EXPECT_EQ(times->own(inner), Nanos{100 * kUs});
  EXPECT_FALSE(found.of_label.contains(inner)) << "waited from the operator's end on";
  EXPECT_EQ(times->own(first), Nanos{50 * kUs});
  EXPECT_EQ(times->own(second), Nanos{50 * kUs});
}

// A thread computes during its send, and finally waits for it.
TEST(HostTimes, ASendRunsBesideItsThread) {
  Threads threads;
  const NodeId step = threads.Add(NodeKind::kLabel, "step", 0, 300);
  const NodeId call = threads.Add(NodeKind::kOperator, "c10d::send", 10, 30);
  const NodeId send = threads.Add(NodeKind::kSend, "gloo:send", 20, 200);
  const NodeId inside = threads.Add(NodeKind::kOperator, "aten::mm", 40, 140);
  const NodeId after = threads.Add(NodeKind::kOperator, "aten::add", 210, 250);
  threads.WaitFor(after, send);
  const Trace trace = threads.Finish();
  const auto times = HostTimes::Find(trace, {});
  ASSERT_TRUE(times);
  EXPECT_EQ(times->own(call), Nanos{20 * kUs});
  EXPECT_EQ(times->own(send), Nanos{180 * kUs});
  EXPECT_EQ(times->own(inside), Nanos{100 * kUs});
  EXPECT_EQ(times->own(step), Nanos{(10 + 10 + 10 + 50) * kUs}) << "but for 140 to 200";
  EXPECT_EQ(times->before(send), call);
  EXPECT_EQ(times->before(inside), call);
  const TimeSet& waits = times->waits(trace.lane_id(step));
  ASSERT_EQ(waits.intervals().size(), 1u);
  EXPECT_EQ(waits.intervals()[0], (Interval{Nanos{140 * kUs}, Nanos{200 * kUs}}));
}

// Gloo's thread wakes the waiting thread before it leaves its label.
TEST(HostTimes, WhoIsWokenBeforeTheLabelEndsHasWaited) {
  Threads threads;
  const NodeId step = threads.Add(NodeKind::kLabel, "step", 0, 1200);
  threads.Add(NodeKind::kOperator, "allreduce_", 10, 20);
  const NodeId gloo = threads.Add(NodeKind::kCollective, "gloo:all_reduce", 15, 1000, true);
  const NodeId update = threads.Add(NodeKind::kLabel, "update", 950, 1150);
  const NodeId add = threads.Add(NodeKind::kOperator, "add", 1020, 1100);
  threads.WaitFor(add, gloo);
  const Trace trace = threads.Finish();
  const auto times = HostTimes::Find(trace, {});
  ASSERT_TRUE(times);
  EXPECT_EQ(times->own(step), Nanos{(10 + 50) * kUs}) << "before it asks, and behind the update";
  EXPECT_EQ(times->own(update), Nanos{(20 + 50) * kUs}) << "from the end of the label on";
  EXPECT_EQ(times->stretches().woken.at(add).time, Nanos{20 * kUs});
}

// Synchronous calls: one thread stayed in the call while Gloo was working; one left it but was
// delayed.
TEST(HostTimes, WhoIsInACallWhileGlooWorksForItWaits) {
  for (const bool waits : {true, false}) {
    Threads threads;
    const NodeId call = threads.Add(NodeKind::kOperator, "c10d::allreduce_", 1000, 4000);
    threads.Add(NodeKind::kCollective, "gloo:all_reduce", 1500, 4500, true);
    threads.Add(NodeKind::kOperator, "mul", waits ? 4510 : 4100, 5000);
    const Trace trace = threads.Finish();
    const auto times = HostTimes::Find(trace, {});
    ASSERT_TRUE(times);
    EXPECT_EQ(times->own(call), Nanos{(waits ? 500 : 3000) * kUs});
    EXPECT_EQ(times->waits(trace.lane_id(call)).length(), Nanos{(waits ? 2500 : 0) * kUs});
  }
}

// The program worked while the collective ended, and no longer waited when it reached the wait.
TEST(HostTimes, WaitingBeginsWhereTheProgramSaysThatItWaits) {
  for (const bool waits : {true, false}) {
    Threads threads;
    const NodeId step = threads.Add(NodeKind::kLabel, "step", 0, 100'000);
    threads.Add(NodeKind::kOperator, "c10d::allreduce_", 1000, 2000);
    const int64_t end = waits ? 60'000 : 30'000;
    const NodeId gloo = threads.Add(NodeKind::kCollective, "gloo:all_reduce", 1500, end, true);
    threads.Add(NodeKind::kLabel, "torch.distributed.Work.wait", 50'000, waits ? 60'000 : 50'010);
    const NodeId mul = threads.Add(NodeKind::kOperator, "mul", 61'000, 62'000);
    threads.WaitFor(mul, gloo);
    const Trace trace = threads.Finish();
    const auto times = HostTimes::Find(trace, {});
    ASSERT_TRUE(times);
    EXPECT_EQ(times->waits(trace.lane_id(step)).length(), Nanos{(waits ? 10'000 : 0) * kUs});
    EXPECT_EQ(times->own(step), Nanos{(100'000 - 1000 - 1000 - (waits ? 10'000 : 10)) * kUs});
  }
}

// Functional collectives, as of DTensor, are awaited in an operator.
TEST(HostTimes, AnOperatorThatWaitsIsIdleUntilTheCollectiveEnds) {
  Threads threads;
  const NodeId call = threads.Add(NodeKind::kOperator, "c10d::allreduce_", 1000, 2000);
  const NodeId gloo = threads.Add(NodeKind::kCollective, "gloo:all_reduce", 1500, 60'000, true);
  threads.Add(NodeKind::kOperator, "aten::mul", 3000, 4000);
  const NodeId waits =
      threads.Add(NodeKind::kOperator, "_c10d_functional::wait_tensor", 50'000, 60'020);
  const NodeId add = threads.Add(NodeKind::kOperator, "aten::add", 60'100, 61'000);
  threads.WaitFor(add, gloo);
  const Trace trace = threads.Finish();
  const auto times = HostTimes::Find(trace, {});
  ASSERT_TRUE(times);
  EXPECT_EQ(times->waits(trace.lane_id(call)).length(), Nanos{10'000 * kUs});
  EXPECT_EQ(times->own(waits), Nanos{20 * kUs});
}

TEST(HostTimes, WithoutStartsNothingIsKnown) {
  TraceBuilder builder;
  builder.AddNode({.source_id = 1, .kind = NodeKind::kOperator, .duration = Nanos{5}});
  EXPECT_FALSE(HostTimes::Find(builder.Finish().value(), {}));
}

}  // namespace
}  // namespace etude
