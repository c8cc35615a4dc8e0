#include "src/sim/machine/measured_times.h"

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace etude {
namespace {

MeasuredTimes ExampleTimes() {
  return {{.machine = {.backend = "gloo", .device = "cpu", .cores = 2},
           .series = {{.kind = CollectiveType::kAllReduce,
                       .ranks = 2,
                       .points = {{8, 1000, 0, 0.5}, {108, 2000, 0, 1.0}, {208, 4000, 0, 2.0}}},
                      {.kind = CollectiveType::kAllReduce,
                       .ranks = 4,
                       .points = {{100, 3000, 0, 1}, {200, 2000, 0, 1}}},
                      {.kind = CollectiveType::kBarrier, .ranks = 2, .points = {{0, 500, 0, 0}}},
                      {.kind = kMessageKind, .ranks = 2, .points = {{8, 100, 0, 0.25}}}}},
          "m.toml"};
}

Result<CommunicationTime> AllReduceTime(int64_t ranks, int64_t bytes) {
  std::vector<int64_t> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return ExampleTimes().TimeOf(CollectiveType::kAllReduce, all, bytes);
}

TEST(MeasuredTimes, IsLinearBetweenSizes) {
  EXPECT_EQ(AllReduceTime(2, 8)->nanos, 1000);
  EXPECT_EQ(AllReduceTime(2, 33)->nanos, 1250);
  EXPECT_DOUBLE_EQ(AllReduceTime(2, 33)->cores, 0.625);
  EXPECT_EQ(AllReduceTime(2, 108)->nanos, 2000);
  EXPECT_EQ(AllReduceTime(2, 158)->nanos, 3000);
  EXPECT_DOUBLE_EQ(AllReduceTime(2, 158)->cores, 1.5);
}

TEST(MeasuredTimes, IsConstantBelowTheSmallestSize) {
  EXPECT_EQ(AllReduceTime(2, 0)->nanos, 1000);
  EXPECT_DOUBLE_EQ(AllReduceTime(2, 0)->cores, 0.5);
}

TEST(MeasuredTimes, ContinuesTheLastSlopeUpToFourTimesTheLargestSize) {
  EXPECT_EQ(AllReduceTime(2, 308)->nanos, 6000);
  EXPECT_DOUBLE_EQ(AllReduceTime(2, 308)->cores, 2.0);
  EXPECT_EQ(AllReduceTime(2, 832)->nanos, 16480);
  const auto beyond = AllReduceTime(2, 833);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(beyond.error().message,
            "m.toml: found all_reduce of 2 ranks and 833 bytes, expected at most 832 bytes: the "
            "largest measured size is 208 bytes");
}

TEST(MeasuredTimes, DoesNotFallBeyondTheLargestSize) {
  EXPECT_EQ(AllReduceTime(4, 150)->nanos, 2500);
  EXPECT_EQ(AllReduceTime(4, 800)->nanos, 2000);
}

TEST(MeasuredTimes, BarrierHasOneTime) {
  const std::array<int64_t, 2> ranks = {0, 1};
  EXPECT_EQ(ExampleTimes().TimeOf(CollectiveType::kBarrier, ranks, 1'000'000)->nanos, 500);
}

TEST(MeasuredTimes, OneSizeHasNoSlope) {
  EXPECT_EQ(ExampleTimes().TimeOfMessage(3, 7, 8)->nanos, 100);
  EXPECT_DOUBLE_EQ(ExampleTimes().TimeOfMessage(3, 7, 0)->cores, 0.25);
  EXPECT_FALSE(ExampleTimes().TimeOfMessage(3, 7, 9));
}

TEST(MeasuredTimes, NamesWhatIsMeasured) {
  const std::string measured = "; measured: all_reduce of 2, 4 ranks; barrier of 2 ranks; message";
  EXPECT_EQ(AllReduceTime(3, 8).error().message,
            "m.toml: missing all_reduce of 3 ranks" + measured);
  const std::array<int64_t, 2> ranks = {0, 1};
  EXPECT_EQ(ExampleTimes().TimeOf(CollectiveType::kReduce, ranks, 8).error().message,
            "m.toml: missing reduce of 2 ranks" + measured);
  EXPECT_FALSE(AllReduceTime(2, -1));
}

TEST(MeasuredTimes, ReadsFiles) {
  const auto times = MeasuredTimes::Parse(
      "[machine]\nbackend = \"gloo\"\ndevice = \"cpu\"\ncores = 2\n", "m.toml");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->cores(), 2);
  EXPECT_EQ(times->name(), "measured-1");
  EXPECT_EQ(times->TimeOfMessage(0, 1, 8).error().message,
            "m.toml: missing message of 2 ranks; measured: nothing");
}

}  // namespace
}  // namespace etude
