#include "src/sim/collective/timed_collectives.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/sim/testing/sim_testing.h"

namespace etude {
namespace {

using testing_sim::CollectiveNode;
using testing_sim::ProgramOf;
using testing_sim::RankOf;

// A collective takes 1,000 ns and keeps half a core of each rank busy; a message takes 70 ns.
class PlainTimes final : public CollectiveTimes {
 public:
  std::string_view name() const override { return "plain"; }
  Result<CommunicationTime> TimeOf(CollectiveType type, std::span<const int64_t>,
                                   int64_t) const override {
    if (type != CollectiveType::kAllReduce) return BadInput("found no time of it");
    return CommunicationTime{.nanos = 1000, .cores = 0.5};
  }
  Result<CommunicationTime> TimeOfMessage(int64_t, int64_t, int64_t) const override {
    return CommunicationTime{.nanos = 70};
  }
};

SimNode Host(int64_t nanos) {
  return {.kind = NodeKind::kCompute, .on_host = true, .duration = nanos};
}

SimMachine MachineOf(int64_t ranks, std::optional<double> cores) {
  SimMachine machine;
  machine.dims = {{.shape = NetworkShape::kGraph, .npus = ranks}};
  machine.times = std::make_shared<PlainTimes>();
  machine.cores = cores;
  return machine;
}

SimResult Simulated(const SimMachine& machine, std::vector<SimRank> ranks) {
  return Simulate(machine, {.ranks = std::move(ranks)}).value();
}

// An all-reduce behind a computation of `first`, and one of `beside` that overlaps it.
SimRank Overlapping(int64_t first, int64_t beside) {
  return RankOf(ProgramOf(
      {Host(first), CollectiveNode(CollectiveType::kAllReduce, 64), Host(beside)}, {{}, {0}, {0}}));
}

TEST(TimedCollectives, BeginWithTheLastRankAndEndTogether) {
  const SimResult result =
      Simulated(MachineOf(2, {}), {Overlapping(100, 10), Overlapping(400, 10)});
  for (const int64_t rank : {0, 1}) {
    EXPECT_EQ(result.OfRank(rank).ends[1], 400 + 1000);
    ASSERT_EQ(result.OfRank(rank).collectives.size(), 1u);
    EXPECT_EQ(result.OfRank(rank).collectives[0].source_class, 1u);
    EXPECT_EQ(result.OfRank(rank).collectives[0].transfer, 1000);
    EXPECT_EQ(result.OfRank(rank).collectives[0].queue, 0);
  }
  EXPECT_EQ(result.OfRank(0).ends[2], 110);
}

// Two ranks on one core: computations of 100 take 200. Then two computations and two halves of the
// collective demand three cores, so each gets a quarter: the collective advances by a half, and a
// computation by a quarter. At 200 + 4 · 200 the computations of 200 are done; the collective has
// advanced by 400, and needs 600 more.
TEST(TimedCollectives, ShareTheCoresWithComputations) {
  const SimResult result =
      Simulated(MachineOf(2, 1), {Overlapping(100, 200), Overlapping(100, 200)});
  for (const int64_t rank : {0, 1}) {
    EXPECT_EQ(result.OfRank(rank).ends[0], 200);
    EXPECT_EQ(result.OfRank(rank).ends[2], 1000);
    EXPECT_EQ(result.OfRank(rank).ends[1], 1600);
    EXPECT_EQ(result.OfRank(rank).collectives[0].queue, 400);
  }
}

// On 2.5 cores, two halves of the collective get all that they demand, and the computations three
// quarters of a core each.
TEST(TimedCollectives, WhatDemandsLessThanAnEqualShareGetsIt) {
  const SimResult result =
      Simulated(MachineOf(2, 2.5), {Overlapping(100, 600), Overlapping(100, 600)});
  EXPECT_EQ(result.OfRank(0).ends[0], 100);
  EXPECT_EQ(result.OfRank(0).ends[1], 1100);
  EXPECT_EQ(result.OfRank(0).ends[2], 900);
}

// Jobs that were recorded without a device compute on the host, whose nodes take a device's place.
TEST(TimedCollectives, ComputationsInsteadOfADevicesShareTheCores) {
  SimProgram program = ProgramOf({{.kind = NodeKind::kCompute, .duration = 100}}, {{}});
  for (const bool host_computes : {false, true}) {
    program.host_computes = host_computes;
    const SimResult result = Simulated(MachineOf(2, 1), {RankOf(program), RankOf(program)});
    EXPECT_EQ(result.OfRank(0).end, host_computes ? 200 : 100);
  }
}

// Computations that were recorded by four ranks on two cores contain this sharing.
TEST(TimedCollectives, RecordedSharingOfCoresIsNotAddedAgain) {
  for (const double share : {1.0, 0.5}) {
    const std::vector<SimRank> ranks(4, RankOf(ProgramOf({Host(100)}, {{}})));
    const auto result = Simulate(MachineOf(4, 2), {.ranks = ranks, .core_share = share});
    ASSERT_TRUE(result);
    for (int64_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(result->OfRank(rank).ends[0], share < 1 ? 100 : 200);
    }
  }
}

TEST(TimedCollectives, WithEnoughCoresNothingWaits) {
  const SimResult result =
      Simulated(MachineOf(2, 3), {Overlapping(100, 300), Overlapping(100, 300)});
  EXPECT_EQ(result.OfRank(1).ends[2], 400);
  EXPECT_EQ(result.OfRank(1).ends[1], 1100);
}

TEST(TimedCollectives, MessagesTakeTheirTime) {
  const SimNode send{.kind = NodeKind::kSend, .peer = 0, .bytes = 8};
  const SimNode recv{.kind = NodeKind::kRecv, .peer = 0, .bytes = 8};
  const SimResult result = Simulated(MachineOf(2, {}), {RankOf(ProgramOf({send}, {{}}), {}, {1}),
                                                        RankOf(ProgramOf({recv}, {{}}), {}, {0})});
  EXPECT_EQ(result.OfRank(1).end, 70);
}

TEST(TimedCollectives, UnknownTimesAreErrors) {
  const SimRank rank = RankOf(ProgramOf({CollectiveNode(CollectiveType::kAllGather, 64)}, {{}}));
  const auto result = Simulate(MachineOf(2, {}), {.ranks = {rank, rank}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "rank 1: node 0: found no time of it");
}

TEST(TimedCollectives, RanksThatDisagreeAreErrors) {
  const auto of = [](CollectiveType type) {
    return RankOf(ProgramOf({CollectiveNode(type, 64)}, {{}}));
  };
  const auto result =
      Simulate(MachineOf(2, {}),
               {.ranks = {of(CollectiveType::kAllReduce), of(CollectiveType::kAllGather)}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message,
            "rank 1: node 0: found all_gather, expected all_reduce as on rank 0");
}

SimNode Recorded(SimNode node, int64_t nanos) {
  node.duration = nanos;
  return node;
}

SimMachine AsRecorded(int64_t ranks) {
  SimMachine machine = MachineOf(ranks, {});
  machine.times = std::make_shared<RecordedCommunications>();
  return machine;
}

// Rank 1 begins 50 ns late and computes for 400: the all-reduce begins at 450, and takes 20 and 30.
TEST(TimedCollectives, TakeTheirRecordedTimesAfterTheLastRank) {
  std::vector<SimRank> ranks;
  for (const int64_t rank : {0, 1}) {
    const SimNode collective = CollectiveNode(CollectiveType::kAllReduce, 64);
    ranks.push_back(RankOf(ProgramOf(
        {Host(100 + 300 * rank), Recorded(collective, 20 + 10 * rank), Host(5)}, {{}, {0}, {1}})));
  }
  const SimResult result =
      Simulate(AsRecorded(2), {.ranks = std::move(ranks), .begins = {0, 50}}).value();
  EXPECT_EQ(result.OfRank(0).ends, (std::vector<int64_t>{100, 470, 475}));
  EXPECT_EQ(result.OfRank(1).ends, (std::vector<int64_t>{450, 480, 485}));
  EXPECT_EQ(result.OfRank(1).collectives[0].transfer, 30);
}

// A receive takes its time after both sides have begun; a send its own.
TEST(TimedCollectives, MessagesTakeTheirRecordedTimes) {
  SimNode send{.kind = NodeKind::kSend, .peer = 0, .duration = 7, .bytes = 64};
  SimNode recv{.kind = NodeKind::kRecv, .peer = 0, .duration = 40, .bytes = 64};
  for (const int64_t sender_first : {false, true}) {
    std::vector<SimRank> ranks;
    ranks.push_back(RankOf(ProgramOf({Host(sender_first ? 10 : 200), send}, {{}, {0}})));
    ranks.push_back(RankOf(ProgramOf({Host(100), recv}, {{}, {0}})));
    ranks[0].peers = {1};
    ranks[1].peers = {0};
    const SimResult result = Simulate(AsRecorded(2), {.ranks = std::move(ranks)}).value();
    EXPECT_EQ(result.OfRank(0).ends[1], sender_first ? 17 : 207);
    EXPECT_EQ(result.OfRank(1).ends[1], sender_first ? 140 : 240);
  }
}

TEST(TimedCollectives, ACommunicationWithoutARecordedTimeIsAnError) {
  const auto result = Simulate(
      AsRecorded(1),
      {.ranks = {RankOf(ProgramOf({CollectiveNode(CollectiveType::kAllReduce, 64)}, {{}}))}});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("found a communication without a recorded time"),
            std::string::npos);
}

}  // namespace
}  // namespace etude
