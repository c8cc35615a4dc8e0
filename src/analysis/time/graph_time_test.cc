#include "src/analysis/time/graph_time.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "src/run/planted_trace.h"

namespace etude {
namespace {

using testing_support::PlantedTrace;
using testing_support::Us;

std::string TextOf(const GraphTime& time) {
  std::string text;
  for (const GraphTime::Gap& gap : time.gaps) {
    text += std::string(Name(gap.kind)) + " of rank " + std::to_string(gap.rank) + " on " +
            gap.lane + ": " + std::to_string(gap.count) + ", " +
            std::to_string(gap.time.count / 1000) + " us\n";
  }
  return text;
}

Nanos SumOf(const GraphTime& time) {
  Nanos sum;
  for (const GraphTime::Gap& gap : time.gaps) sum = sum + gap.time;
  return sum;
}

GraphTime OfOne(const Trace& trace) {
  return FindGraphTime(MakeRankRun(RecordedRun(trace, {}), CommLog())).value();
}

// 10 us, a gap of 5, 25 us with 4 us inside another operator: 40 recorded, 35 of nodes.
TEST(GraphTime, GapsOfTheHost) {
  const Trace trace = PlantedTrace()
                          .Operator("a", 1, 0, 10)
                          .Operator("b", 1, 15, 40)
                          .Operator("inside", 1, 20, 24)
                          .Read();
  const GraphTime time = OfOne(trace);
  EXPECT_EQ(time.recorded, Us(40));
  EXPECT_EQ(time.simulated, Us(35));
  EXPECT_DOUBLE_EQ(time.error(), -5.0 / 40);
  EXPECT_EQ(TextOf(time), "host gap of rank 0 on thread 1: 1, 5 us\n");
}

// Launched from 2 us on, kernels run from 6 to 30 and from 31 to 50; each begins when it is
// launched, or when the previous one has ended.
TEST(GraphTime, LaunchesAndQueues) {
  const Trace trace = PlantedTrace()
                          .Launch(1, 2, 4, 7)
                          .Launch(1, 4, 5, 8)
                          .Kernel("first", 3, 6, 30, 7)
                          .Kernel("second", 3, 31, 50, 8)
                          .Read();
  const GraphTime time = OfOne(trace);
  EXPECT_EQ(time.recorded, Us(48));
  EXPECT_EQ(time.simulated, Us(24 + 19));
  EXPECT_EQ(TextOf(time),
            "launch of rank 0 on device 0 stream 3: 1, 4 us\n"
            "queue of rank 0 on device 0 stream 3: 1, 1 us\n");
  EXPECT_EQ(SumOf(time), time.recorded - time.simulated);
}

// Kernels of 20 us each, each launched 5 us after the end of the previous one by an otherwise idle
// host: the host's gaps disappear, the stream's work stays.
TEST(GraphTime, AStreamStaysInOrderWhereLaunchesComeLate) {
  const Trace trace = PlantedTrace()
                          .Launch(1, 0, 1, 7)
                          .Launch(1, 25, 26, 8)
                          .Launch(1, 50, 51, 9)
                          .Kernel("first", 3, 0, 20, 7)
                          .Kernel("second", 3, 26, 46, 8)
                          .Kernel("third", 3, 51, 71, 9)
                          .Read();
  EXPECT_EQ(OfOne(trace).simulated, Us(60));
}

NodeId Find(const Trace& trace, const std::string& name) {
  NodeId found;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.name(node) == name) found = node;
  });
  return found;
}

struct TwoRanks {
  TwoRanks(const Trace& first, const Trace& second, int64_t offset,
           const std::string& collective = "reduce", const std::vector<OrderEdge>& waits = {}) {
    for (const Trace* trace : {&first, &second}) {
      CommLog log;
      log.rank = static_cast<int64_t>(ranks.size());
      CommCall call;
      call.row = Find(*trace, collective);
      log.groups.emplace_back();
      log.calls.push_back(call);
      const RecordedRun run(*trace, trace == &first ? waits : std::vector<OrderEdge>());
      ranks.push_back(MakeRankRun(run, std::move(log)));
    }
    match.clocks = {{.rank = 0, .offset = Nanos{}}, {.rank = 1, .offset = Us(offset)}};
    match.meetings = {{{0, 0}, {1, 0}}};
  }
  std::vector<RankRun> ranks;
  CommMatch match;
};

// Rank 1's clock is 1,000 ahead. Rank 0 computes for 20 us and waits from 25 on for rank 1, which
// joins at 60; both end at 70. Rank 1 computes for 40 us before, after a gap of 20. The transfer
// takes 10: rank 1 is done after 40 + 10 us, rank 0 5 us later.
TEST(GraphTime, CollectivesBeginWhenTheLastRankHasCome) {
  const TwoRanks two(PlantedTrace()
                         .Operator("work", 1, 0, 20)
                         .Operator("reduce", 1, 25, 70)
                         .Operator("inside", 1, 30, 65)
                         .Operator("more", 1, 70, 75)
                         .Read(),
                     PlantedTrace()
                         .Operator("work", 1, 1'000, 1'010)
                         .Operator("work", 1, 1'030, 1'060)
                         .Operator("reduce", 1, 1'060, 1'070)
                         .Read(),
                     1'000);
  const GraphTime time = FindGraphTime(two.ranks, two.match).value();
  EXPECT_EQ(time.joint, 1u);
  EXPECT_EQ(time.recorded, Us(75));
  EXPECT_EQ(time.simulated, Us(40 + 10 + 5));
  EXPECT_EQ(TextOf(time), "host gap of rank 1 on thread 1: 1, 20 us\n");
}

// Rank 0 continues at 65, before Gloo's thread ends its label at 70, and rank 1 joins at 60 after
// 10 us of work: rank 0's wait for it is not part of the collective.
TEST(GraphTime, WhoIsWokenBeforeALabelEndsHasWaitedForTheLastRank) {
  const Trace first = PlantedTrace()
                          .Operator("call", 1, 0, 5)
                          .Operator("gloo:all_reduce", 2, 2, 70)
                          .Operator("more", 1, 65, 75)
                          .Read();
  const OrderEdge wait{.node = Find(first, "more"), .before = Find(first, "gloo:all_reduce")};
  const TwoRanks two(
      first,
      PlantedTrace().Operator("work", 1, 0, 10).Operator("gloo:all_reduce", 1, 60, 70).Read(), 0,
      "gloo:all_reduce", {wait});
  const GraphTime time = FindGraphTime(two.ranks, two.match).value();
  EXPECT_EQ(time.joint, 1u);
  EXPECT_EQ(time.recorded, Us(75));
  EXPECT_EQ(time.simulated, Us(10 + 5 + 10));
}

// A thread's activity between its own send and the wait for it is not inside the message.
TEST(GraphTime, MessagesRunBesideTheirThread) {
  const TwoRanks two(
      PlantedTrace()
          .Operator("c10d::send", 1, 0, 5)
          .Operator("gloo:send", 1, 4, 70)
          .Operator("mm", 1, 10, 60)
          .Operator("more", 1, 70, 75)
          .Read(),
      PlantedTrace().Operator("work", 1, 0, 10).Operator("gloo:send", 1, 60, 70).Read(), 0,
      "gloo:send");
  const GraphTime time = FindGraphTime(two.ranks, two.match).value();
  EXPECT_EQ(time.joint, 1u);
  EXPECT_EQ(time.recorded, Us(75));
  EXPECT_EQ(time.simulated, Us(5 + 50 + 5));
}

// The receiver waits from 2 to 61; the sender waits for its message only at 70.
TEST(GraphTime, AMessageIsThereWhenTheFirstOfBothIsDone) {
  TwoRanks two(PlantedTrace().Operator("work", 1, 0, 60).Operator("sent", 1, 60, 70).Read(),
               PlantedTrace().Operator("work", 1, 0, 2).Operator("sent", 1, 2, 61).Read(), 0,
               "sent");
  ASSERT_EQ(two.match.meetings.size(), 1u);
  two.match.messages.emplace_back(two.match.meetings[0][0], two.match.meetings[0][1]);
  two.match.meetings.clear();
  const GraphTime time = FindGraphTime(two.ranks, two.match).value();
  EXPECT_EQ(time.joint, 1u);
  EXPECT_EQ(time.simulated, Us(60 + 1));
}

// A rank that is done before another one joins did not wait: each call takes its own time.
TEST(GraphTime, CallsThatDoNotWait) {
  const TwoRanks two(PlantedTrace().Operator("reduce", 1, 0, 5).Read(),
                     PlantedTrace().Operator("reduce", 1, 20, 24).Read(), 0);
  const GraphTime time = FindGraphTime(two.ranks, two.match).value();
  EXPECT_EQ(time.apart, 1u);
  EXPECT_EQ(time.joint, 0u);
  EXPECT_EQ(time.recorded, Us(24));
  EXPECT_EQ(time.simulated, Us(5));
  EXPECT_EQ(SumOf(time), Us(19));
}

TEST(GraphTime, ARankThatComesTwice) {
  const Trace trace = PlantedTrace().Operator("work", 1, 0, 5).Read();
  std::vector<RankRun> runs;
  for (const int64_t rank : {0, 1}) {
    CommLog log;
    log.rank = rank;
    runs.push_back(MakeRankRun(RecordedRun(trace, {}), std::move(log)));
  }
  EXPECT_TRUE(FindGraphTime(runs));
  runs.back().log.rank = 0;
  EXPECT_FALSE(FindGraphTime(runs));
}

TEST(GraphTime, NothingRecorded) {
  EXPECT_FALSE(FindGraphTime(MakeRankRun(PlantedTrace().Read(), CommLog())));
}

}  // namespace
}  // namespace etude
