#include "src/analysis/comm/comm_match.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/analysis/health.h"

namespace etude {
namespace {

CommLog Log(int64_t rank, int64_t world = 2) {
  CommLog log;
  log.rank = rank;
  log.world_size = world;
  return log;
}

size_t GroupOf(CommLog& log, const std::string& name, const std::vector<int64_t>& ranks) {
  for (size_t i = 0; i < log.groups.size(); ++i) {
    if (log.groups[i].name == name) return i;
  }
  log.groups.push_back({name, ranks});
  return log.groups.size() - 1;
}

void Collective(CommLog& log, CollectiveType type, int64_t bytes, int64_t end = 0,
                const std::string& group = "0", const std::vector<int64_t>& ranks = {0, 1}) {
  CommCall call;
  call.type = type;
  call.group = GroupOf(log, group, ranks);
  for (const CommCall& other : log.calls) {
    if (other.kind == NodeKind::kCollective && other.group == call.group) ++call.index;
  }
  call.bytes = Bytes{bytes};
  call.node = 100 + log.calls.size();
  call.end = Nanos{end};
  log.calls.push_back(call);
}

void PointToPoint(CommLog& log, NodeKind kind, int64_t peer, int64_t tag = 0) {
  CommCall call;
  call.kind = kind;
  call.peer = peer;
  call.tag = tag;
  call.node = 100 + log.calls.size();
  log.calls.push_back(call);
}

constexpr auto kAllReduce = CollectiveType::kAllReduce;
constexpr auto kBroadcast = CollectiveType::kBroadcast;

TEST(CommMatch, MatchesCollectivesAndPairs) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  for (CommLog& log : logs) {
    Collective(log, kAllReduce, 64);
    Collective(log, kBroadcast, 8);
  }
  PointToPoint(logs[0], NodeKind::kSend, 1, 7);
  PointToPoint(logs[1], NodeKind::kRecv, 0, 7);
  const CommMatch match = MatchComms(logs);
  EXPECT_EQ(match.collectives, 2u);
  EXPECT_EQ(match.point_to_point, 1u);
  EXPECT_EQ(match.unmatched, 0u);
  EXPECT_EQ(match.first_mismatch, "");
  EXPECT_TRUE(match.missing_ranks.empty());
}

TEST(CommMatch, ExplainsAnotherType) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  for (CommLog& log : logs) Collective(log, kAllReduce, 64);
  Collective(logs[0], kAllReduce, 64);
  Collective(logs[1], kBroadcast, 8);
  const CommMatch match = MatchComms(logs);
  EXPECT_EQ(match.collectives, 1u);
  EXPECT_EQ(match.unmatched, 2u);
  EXPECT_EQ(match.first_mismatch,
            "rank 0 waits in all_reduce #1 of group '0' (64 bytes) (node 101); rank 1 is in "
            "broadcast #1 of group '0' (8 bytes) (node 101)");
  EXPECT_EQ(JudgeJob(match).verdict(), Verdict::kDontTrust);
}

TEST(CommMatch, SizesMustAgreeUnlessTheyAreSplit) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  Collective(logs[0], kAllReduce, 64);
  Collective(logs[1], kAllReduce, 128);
  EXPECT_EQ(MatchComms(logs).unmatched, 2u);
  for (CommLog& log : logs) log.calls[0].uneven = true;
  EXPECT_EQ(MatchComms(logs).unmatched, 0u);
}

TEST(CommMatch, FollowsTheChainOverGroups) {
  std::vector<CommLog> logs{Log(0, 3), Log(1, 3), Log(2, 3)};
  // 0 and 1 should meet in 'a', but 1 is in 'b' first, for which 2 never comes.
  Collective(logs[0], kAllReduce, 64, 0, "a", {0, 1});
  Collective(logs[1], kAllReduce, 32, 0, "b", {1, 2});
  const CommMatch match = MatchComms(logs);
  EXPECT_EQ(
      match.first_mismatch,
      "rank 0 waits in all_reduce #0 of group 'a' (64 bytes) (node 100); rank 1 is in all_reduce "
      "#0 of group 'b' (32 bytes) (node 100); rank 2 has no further matching communication");
}

TEST(CommMatch, OneThatEndsEarlyIsSaid) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  for (CommLog& log : logs) Collective(log, kAllReduce, 64);
  Collective(logs[1], kAllReduce, 64);
  EXPECT_EQ(MatchComms(logs).first_mismatch,
            "rank 1 waits in all_reduce #1 of group '0' (64 bytes) (node 101); rank 0 has no "
            "further matching communication");
}

TEST(CommMatch, RanksWithoutATraceAreMissingAndNotWaitedFor) {
  std::vector<CommLog> logs{Log(0, 4), Log(1, 4)};
  for (CommLog& log : logs) Collective(log, kAllReduce, 64, 0, "0", {0, 1, 2, 3});
  PointToPoint(logs[0], NodeKind::kSend, 3);
  const CommMatch match = MatchComms(logs);
  EXPECT_EQ(match.unmatched, 0u);
  EXPECT_EQ(match.missing_ranks, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(JudgeJob(match).verdict(), Verdict::kUsable);
}

// Files of an earlier, larger job that were left in the folder.
TEST(CommMatch, TracesOfTwoJobsDisagreeOnTheirRanks) {
  const std::vector<CommLog> logs{Log(0), Log(1), Log(2, 4), Log(3, 4)};
  const Health health = JudgeJob(MatchComms(logs));
  ASSERT_FALSE(health.reasons.empty());
  EXPECT_EQ(health.reasons[0].name, "world_size");
  EXPECT_EQ(health.reasons[0].text,
            "the traces are from different jobs: they have different numbers of ranks, 2 by ranks "
            "0-1, 4 by ranks 2-3");
  EXPECT_EQ(health.verdict(), Verdict::kDontTrust);
}

TEST(CommMatch, CallsWithoutAPartnersRankAreCounted) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  PointToPoint(logs[0], NodeKind::kSend, 1, 7);
  PointToPoint(logs[1], NodeKind::kRecv, 0, 7);
  PointToPoint(logs[0], NodeKind::kSend, 1);
  PointToPoint(logs[1], NodeKind::kRecv, 0);
  logs[1].calls[1].peer.reset();
  CommMatch match = MatchComms(logs);
  EXPECT_EQ(match.point_to_point, 1u);
  EXPECT_EQ(match.unknown_partners, 1u);
  EXPECT_EQ(match.unmatched, 0u) << "what rank 1 receives may be what rank 0 sends";
  EXPECT_EQ(JudgeJob(match).reasons[0].name, "unknown_partners");

  logs[1].calls.pop_back();
  match = MatchComms(logs);
  EXPECT_EQ(match.unknown_partners, 0u);
  EXPECT_EQ(match.unmatched, 1u);
}

TEST(CommMatch, SizesOfSendsAndReceivesMustAgree) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  PointToPoint(logs[0], NodeKind::kSend, 1, 7);
  PointToPoint(logs[1], NodeKind::kRecv, 0, 7);
  logs[0].calls[0].bytes = Bytes{64};
  EXPECT_EQ(MatchComms(logs).point_to_point, 1u) << "the size of one is not known";
  logs[1].calls[0].bytes = Bytes{128};
  const CommMatch match = MatchComms(logs);
  EXPECT_EQ(match.point_to_point, 0u);
  EXPECT_EQ(match.unmatched, 2u);
  EXPECT_EQ(match.first_mismatch,
            "rank 0 waits in send to rank 1 (tag 7) (64 bytes) (node 100); rank 1 is in recv from "
            "rank 0 (tag 7) (128 bytes) (node 100)");
}

// A rank without any of the calls must be waited for even if its trace lacks the group.
TEST(CommMatch, AllRanksAreInAGroupOfAll) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  Collective(logs[0], kAllReduce, 64, 0, "0", {});
  CommMatch match = MatchComms(logs);
  EXPECT_EQ(match.unmatched, 0u) << "it may be a group of one";
  EXPECT_EQ(match.collectives, 0u) << "nobody was there to meet";
  logs[0].groups[0].is_all = true;
  match = MatchComms(logs);
  EXPECT_EQ(match.unmatched, 1u);
  EXPECT_EQ(match.first_mismatch,
            "rank 0 waits in all_reduce #0 of group '0' (64 bytes) (node 100); rank 1 has no "
            "further matching communication");
  Collective(logs[1], kAllReduce, 64, 0, "0", {});
  EXPECT_EQ(MatchComms(logs).collectives, 1u);
}

// A call without a group must count for the group that its rank lacks, so that later calls keep
// their numbers.
TEST(CommMatch, ACallOfAnUnknownGroupIsOneThatItsRankLacks) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  Collective(logs[0], kAllReduce, 64);
  Collective(logs[0], CollectiveType::kScatter, 32);
  Collective(logs[0], CollectiveType::kGather, 16);
  Collective(logs[1], kAllReduce, 64);
  Collective(logs[1], CollectiveType::kScatter, 0, 0, "", {});
  Collective(logs[1], CollectiveType::kGather, 16);
  CommMatch match = MatchComms(logs);
  EXPECT_EQ(match.collectives, 3u);
  EXPECT_EQ(match.unmatched, 0u) << match.first_mismatch;
  EXPECT_EQ(match.unknown_groups, 0u);
  ASSERT_EQ(match.meetings.size(), 3u);
  EXPECT_EQ(match.meetings[1][1].call, 1u);

  Collective(logs[1], kBroadcast, 8, 0, "", {});  // possibly of a group of this rank alone
  match = MatchComms(logs);
  EXPECT_EQ(match.unmatched, 0u);
  EXPECT_EQ(match.unknown_groups, 1u);
  EXPECT_EQ(JudgeJob(match).reasons[0].name, "unknown_groups");

  // A call that comes too late cannot have been it.
  std::swap(logs[1].calls[1], logs[1].calls[2]);
  match = MatchComms(logs);
  EXPECT_EQ(match.unmatched, 3u);
  EXPECT_EQ(match.first_mismatch,
            "rank 0 waits in scatter #1 of group '0' (32 bytes) (node 101); rank 1 is in gather #1 "
            "of group '0' (16 bytes) (node 102)");
}

TEST(CommMatch, CallsWithoutAGroupOnAllRanksAreOne) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  for (CommLog& log : logs) {
    Collective(log, kAllReduce, 64, 0, "", {});
    Collective(log, kBroadcast, 8);
  }
  const CommMatch match = MatchComms(logs);
  EXPECT_EQ(match.collectives, 2u);
  EXPECT_EQ(match.unknown_groups, 0u);
}

// Rank 1 was profiled one step of a second later, by the same clock.
TEST(CommMatch, CallsOfStepsThatAllHaveAreMatched) {
  constexpr int64_t kSecond = 1'000'000'000;
  std::vector<CommLog> logs{Log(0), Log(1)};
  for (CommLog& log : logs) {
    log.steps = {3 + log.rank, 4 + log.rank, 5 + log.rank};
    for (const int64_t step : log.steps) {
      for (int i = 0; i < 4; ++i) Collective(log, kAllReduce, 64, step * kSecond + i);
      for (size_t k = log.calls.size() - 4; k < log.calls.size(); ++k) log.calls[k].step = step;
    }
  }
  CommMatch match = MatchComms(logs);
  EXPECT_EQ(match.different_steps, "rank 0: 3 to 5, rank 1: 4 to 6");
  EXPECT_EQ(match.other_steps, 8u);
  EXPECT_EQ(match.collectives, 8u);
  EXPECT_EQ(match.unmatched, 0u);
  EXPECT_EQ(match.clocks[1].offset, Nanos{0});
  const Health health = JudgeJob(match, std::nullopt);
  ASSERT_EQ(health.reasons.size(), 1u);
  EXPECT_EQ(health.reasons[0].text,
            "the ranks were recorded in different steps (rank 0: 3 to 5, rank 1: 4 to 6): 8 "
            "communications are in steps that some ranks lack, and ignored");
  // Without marks on one rank, first calls are matched with first calls.
  logs[1].steps.clear();
  match = MatchComms(logs);
  EXPECT_EQ(match.different_steps, "");
  EXPECT_EQ(match.clocks[1].offset, Nanos{kSecond});
}

TEST(CommMatch, ACallWithoutAGroupThatNobodyElseMakesIsUnmatched) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  Collective(logs[0], kAllReduce, 64, 0, "", {});
  EXPECT_EQ(MatchComms(logs).unmatched, 1u);
  EXPECT_EQ(MatchComms(std::span(logs).first(1)).unmatched, 0u) << "rank 1 may have been there";
}

TEST(CommMatch, ClocksComeFromCollectivesThatEndTogether) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  constexpr int64_t kAhead = 5'000'000;
  for (int64_t i = 0; i < 9; ++i) {
    const int64_t noise = (i % 3 - 1) * 100;
    Collective(logs[0], kAllReduce, 64, i * 1'000'000);
    Collective(logs[1], kAllReduce, 64, i * 1'000'000 + kAhead + noise);
    Collective(logs[0], kBroadcast, 64, i * 1'000'000);
    Collective(logs[1], kBroadcast, 64, i * 1'000'000 + 900'000'000);  // no evidence about clocks
  }
  const CommMatch match = MatchComms(logs);
  ASSERT_EQ(match.clocks.size(), 2u);
  EXPECT_EQ(match.clocks[0].offset, Nanos{0});
  EXPECT_EQ(match.clocks[1].offset, Nanos{kAhead});
  EXPECT_EQ(match.clocks[1].meetings, 9u);
  EXPECT_LE(match.clocks[1].spread, Nanos{100});
}

// Members of a simulated ring do not end together: a rank would appear ahead.
TEST(CommMatch, ASimulatedJobHasOneClock) {
  std::vector<CommLog> logs{Log(0), Log(1), Log(2)};
  for (CommLog& log : logs) {
    log.job_clock = true;
    for (int64_t i = 0; i < 4; ++i) {
      Collective(log, kAllReduce, 64, i * 1'000'000 + log.rank * 5'000, "0", {0, 1, 2});
    }
  }
  logs.push_back(Log(3));  // shares no collective
  logs.back().job_clock = true;
  const CommMatch match = MatchComms(logs);
  EXPECT_TRUE(match.one_clock);
  ASSERT_EQ(match.clocks.size(), 4u);
  for (const ClockOffset& clock : match.clocks) {
    EXPECT_EQ(clock.offset, Nanos{0});
    EXPECT_EQ(clock.spread, Nanos{0});
    EXPECT_EQ(clock.reason, "");
  }
}

// Gloo's labels end up to a millisecond apart; on one machine the clocks are known more precisely.
TEST(CommMatch, RanksOfOneMachineHaveOneClock) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  for (int i = 0; i < 3; ++i) {
    for (CommLog& log : logs) Collective(log, kAllReduce, 64, i * 5'000 + log.rank * 700);
  }
  EXPECT_EQ(MatchComms(logs).clocks[1].offset, Nanos{700});
  logs[0].clock = "\"machine\"";
  EXPECT_EQ(MatchComms(logs).clocks[1].offset, Nanos{700});
  logs[1].clock = "\"machine\"";
  const CommMatch match = MatchComms(logs);
  EXPECT_TRUE(match.one_machine);
  EXPECT_FALSE(match.one_clock) << "the job was not simulated";
  EXPECT_EQ(match.clocks[1].offset, Nanos{0});
  logs[1].clock = "\"other\"";
  EXPECT_FALSE(MatchComms(logs).one_machine);
}

TEST(CommMatch, CollectivesThatMayBeOfSmallerGroupsAreSaid) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  for (CommLog& log : logs) log.untimed = true;
  EXPECT_TRUE(JudgeJob(MatchComms(logs), {}).reasons.empty());
  logs[0].ungrouped = 2;
  logs[1].ungrouped = 1;
  const Health health = JudgeJob(MatchComms(logs), {});
  ASSERT_EQ(health.reasons.size(), 1u);
  EXPECT_EQ(health.reasons[0].name, "unknown_groups");
  EXPECT_TRUE(health.reasons[0].text.starts_with("3 collectives have no process group"));
}

TEST(CommMatch, AJobWithoutTimesHasNoClocks) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  const auto reasons = [&] {
    const CommMatch match = MatchComms(logs);
    EXPECT_FALSE(match.clocks[1].offset);
    return JudgeJob(match, {}).reasons.size();
  };
  EXPECT_EQ(reasons(), 1u) << "no collectives to compare them by";
  for (CommLog& log : logs) log.untimed = true;
  EXPECT_EQ(reasons(), 0u);
  logs[0].untimed = false;
  EXPECT_EQ(reasons(), 1u) << "one has times";
}

TEST(CommMatch, OneRecordedRankHasAClockOfItsOwn) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  for (CommLog& log : logs) {
    for (int64_t i = 0; i < 4; ++i) Collective(log, kAllReduce, 64, i * 1'000 + log.rank * 70);
  }
  logs[0].job_clock = true;
  const CommMatch match = MatchComms(logs);
  EXPECT_FALSE(match.one_clock);
  EXPECT_EQ(match.clocks[1].offset, Nanos{70});
}

TEST(CommMatch, TooFewCollectivesGiveNoClock) {
  std::vector<CommLog> logs{Log(0), Log(1)};
  for (CommLog& log : logs) Collective(log, kAllReduce, 64, 5);
  const CommMatch match = MatchComms(logs);
  EXPECT_FALSE(match.clocks[1].offset);
  EXPECT_EQ(match.clocks[1].reason,
            "1 collective that ends on all ranks together was found, at least 3 required");
}

}  // namespace
}  // namespace etude
