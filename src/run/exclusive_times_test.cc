#include "src/run/exclusive_times.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

Trace TimedTree(const std::vector<int>& parents) {
  TraceBuilder builder;
  for (size_t i = 0; i < parents.size(); ++i) {
    NodeRow row;
    row.source_id = i;
    if (parents[i] >= 0) row.parent = static_cast<uint64_t>(parents[i]);
    builder.AddNode(row);
  }
  return builder.Finish().value();
}

NodeTime At(int64_t start, int64_t duration, uint32_t lane = 0) {
  return {.start = Nanos{start}, .duration = Nanos{duration}, .lane = LaneId(lane)};
}

TEST(ExclusiveTimes, SubtractTheUnionOfTheChildren) {
  const std::vector<NodeTime> times = {At(0, 100), At(10, 20), At(20, 20), At(90, 10), At(15, 5)};
  const ExclusiveTimes result = FindExclusiveTimes(TimedTree({-1, 0, 0, 0, 1}), times);
  EXPECT_EQ(result.times[0], Nanos{100 - 30 - 10});
  EXPECT_EQ(result.times[1], Nanos{15});
  EXPECT_EQ(result.times[4], Nanos{5});
  EXPECT_EQ(result.overhanging, 0u);
}

TEST(ExclusiveTimes, LookThroughNodesWithoutTimes) {
  std::vector<NodeTime> times = {At(0, 100), NodeTime{}, At(20, 30)};
  const ExclusiveTimes result = FindExclusiveTimes(TimedTree({-1, 0, 1}), times);
  EXPECT_EQ(result.times[0], Nanos{70});
  EXPECT_EQ(result.times[1], std::nullopt);
}

TEST(ExclusiveTimes, CountOnlyWhatLiesInsideAndSayWhatDoesNot) {
  const std::vector<NodeTime> times = {At(100, 100), At(50, 100), At(190, 100), At(500, 1)};
  const ExclusiveTimes result = FindExclusiveTimes(TimedTree({-1, 0, 0, 0}), times);
  EXPECT_EQ(result.times[0], Nanos{100 - 50 - 10});
  EXPECT_EQ(result.overhanging, 3u);
}

TEST(ExclusiveTimes, LeaveOtherLanesAlone) {
  const std::vector<NodeTime> times = {At(0, 100, 0), At(10, 50, 1)};
  EXPECT_EQ(FindExclusiveTimes(TimedTree({-1, 0}), times).times[0], Nanos{100});
}

TEST(ExclusiveTimes, AreExactWithEqualTimes) {
  const std::vector<NodeTime> times = {At(7, 10), At(7, 10), At(7, 0)};
  const ExclusiveTimes result = FindExclusiveTimes(TimedTree({-1, 0, 1}), times);
  EXPECT_EQ(result.times[0], Nanos{0});
  EXPECT_EQ(result.times[1], Nanos{10});
  EXPECT_EQ(result.times[2], Nanos{0});
}

}  // namespace
}  // namespace etude
