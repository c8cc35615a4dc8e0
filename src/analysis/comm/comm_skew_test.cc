#include "src/analysis/comm/comm_skew.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace etude {
namespace {

CommLog SkewLog(int64_t rank) {
  CommLog log;
  log.rank = rank;
  log.world_size = 2;
  log.groups = {{"0", {0, 1}}};
  return log;
}

void AllReduce(CommLog& log, std::optional<int64_t> begin, int64_t end) {
  CommCall call;
  call.type = CollectiveType::kAllReduce;
  call.index = log.calls.size();
  call.bytes = Bytes{64};
  call.node = 100 + log.calls.size();
  if (begin) {
    call.begin = Nanos{*begin};
    call.end = Nanos{end};
  }
  log.calls.push_back(call);
}

// Rank 1's clock is 1,000 ahead. It is 30, 0 and 40 late, then 20 early; all ends are equal.
std::vector<CommLog> Planted() {
  std::vector<CommLog> logs{SkewLog(0), SkewLog(1)};
  AllReduce(logs[0], 0, 100);
  AllReduce(logs[1], 1'030, 1'100);
  AllReduce(logs[0], 200, 250);
  AllReduce(logs[1], 1'200, 1'250);
  AllReduce(logs[0], 300, 400);
  AllReduce(logs[1], 1'340, 1'400);
  AllReduce(logs[0], 520, 600);
  AllReduce(logs[1], 1'500, 1'600);
  return logs;
}

TEST(CommSkew, SplitsByTheLastBegin) {
  const std::vector<CommLog> logs = Planted();
  const CommSkew skew = SplitSkew(logs, MatchComms(logs));
  ASSERT_EQ(skew.ranks.size(), 2U);
  EXPECT_EQ(skew.ranks[0].rank, 0);
  EXPECT_EQ(skew.ranks[0].type, "all_reduce");
  EXPECT_EQ(skew.ranks[0].group, "0");
  EXPECT_EQ(skew.ranks[0].count, 4U);
  EXPECT_EQ(skew.ranks[0].skew, Nanos{30 + 0 + 40 + 0});
  EXPECT_EQ(skew.ranks[0].transfer, Nanos{70 + 50 + 60 + 80});
  EXPECT_EQ(skew.ranks[0].last, 2U);  // the first of those that begin together
  EXPECT_EQ(skew.ranks[1].skew, Nanos{20});
  EXPECT_EQ(skew.ranks[1].transfer, Nanos{70 + 50 + 60 + 80});
  EXPECT_EQ(skew.ranks[1].last, 2U);
  EXPECT_EQ(skew.untimed + skew.unaligned + skew.alone, 0U);
}

TEST(CommSkew, NamesSingleCollectivesMostSkewFirst) {
  const std::vector<CommLog> logs = Planted();
  const CommSkew skew = SplitSkew(logs, MatchComms(logs));
  ASSERT_EQ(skew.meetings.size(), 4U);
  EXPECT_EQ(skew.meetings[0].call, "all_reduce #2 of group '0'");
  EXPECT_EQ(skew.meetings[0].last_rank, 1);
  EXPECT_EQ(skew.meetings[0].node, 102U);
  EXPECT_EQ(skew.meetings[0].skew, Nanos{40});
  EXPECT_EQ(skew.meetings[0].transfer, Nanos{60});
  EXPECT_EQ(skew.meetings[3].skew, Nanos{});
}

TEST(CommSkew, WaitsNoLongerThanTheCallTook) {
  std::vector<CommLog> logs = Planted();
  // Ends before the other one begins, which no clock offset explains.
  AllReduce(logs[0], 700, 710);
  AllReduce(logs[1], 1'790, 1'800);
  const CommSkew skew = SplitSkew(logs, MatchComms(logs));
  EXPECT_EQ(skew.ranks[0].skew, Nanos{70 + 10});
  EXPECT_EQ(skew.ranks[0].transfer, Nanos{260});
}

TEST(CommSkew, CountsWhatCannotBeSplit) {
  std::vector<CommLog> logs{SkewLog(0), SkewLog(1)};
  AllReduce(logs[0], 0, 100);
  AllReduce(logs[1], 1'030, 1'100);
  AllReduce(logs[0], 200, 300);
  AllReduce(logs[1], std::nullopt, 0);
  const CommSkew skew = SplitSkew(logs, MatchComms(logs));
  EXPECT_EQ(skew.unaligned, 1U);  // one collective is not enough to compare clocks
  EXPECT_EQ(skew.untimed, 1U);
  EXPECT_TRUE(skew.ranks.empty());
  EXPECT_TRUE(skew.meetings.empty());
}

TEST(CommSkew, OneTraceOfAJobHasNoSkew) {
  std::vector<CommLog> logs{SkewLog(0)};
  AllReduce(logs[0], 0, 100);
  EXPECT_EQ(SplitSkew(logs, MatchComms(logs)).alone, 1U);
}

}  // namespace
}  // namespace etude
