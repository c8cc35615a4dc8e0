#include "src/analysis/time/time_summary.h"

#include <cmath>

#include <gtest/gtest.h>

#include <cstdint>

namespace etude {
namespace {

TEST(TimeSummary, InterpolatesBetweenRanks) {
  const TimeSummary summary = Summarise({Nanos{40}, Nanos{10}, Nanos{30}, Nanos{20}});
  EXPECT_EQ(summary.min, Nanos{10});
  EXPECT_EQ(summary.median, Nanos{25});
  EXPECT_EQ(summary.p25, Nanos{17});
  EXPECT_EQ(summary.p75, Nanos{32});
  EXPECT_EQ(summary.count, 4u);
}

TEST(TimeSummary, OneTimeIsItsOwnMedian) {
  const TimeSummary summary = Summarise({Nanos{7}});
  EXPECT_EQ(summary.median, Nanos{7});
  EXPECT_EQ(summary.p75, Nanos{7});
}

TEST(TimeSummary, MedianOfAnEvenNumberIsHalfWay) {
  EXPECT_EQ(Median(std::vector<int64_t>{7, 1, 3}), 3);
  EXPECT_EQ(Median(std::vector<int64_t>{9, 1, 3, 5}), 4);
  EXPECT_EQ(Median(std::vector<Nanos>{Nanos{9}, Nanos{1}}), Nanos{5});
  EXPECT_EQ(Median(std::vector<int64_t>{}), std::nullopt);
}

TEST(TimeSummary, TimesMayLieAsFarApartAsThereAreTimes) {
  const Nanos most{INT64_MAX}, least{INT64_MIN};
  EXPECT_EQ(Summarise({most}).median, most);
  EXPECT_EQ(Summarise({least, most}).median, Nanos{0});
  EXPECT_EQ(Median(std::vector<int64_t>{INT64_MIN, INT64_MAX}), -1);
}

TEST(TimeSummary, ErrorOfTheMeanIsAShareOfIt) {
  EXPECT_EQ(ErrorOfMean({Nanos{5}}), 0);
  // The mean is 20, the standard deviation 10, and there are 3 times.
  EXPECT_DOUBLE_EQ(ErrorOfMean({Nanos{10}, Nanos{20}, Nanos{30}}), 10 / std::sqrt(3.0) / 20);
}

TEST(TimeSummary, ErrorIsRelativeToTheOriginal) {
  const auto original = Summarise({Nanos{100}}), replay = Summarise({Nanos{90}});
  EXPECT_DOUBLE_EQ(*RelativeError(original, replay), -0.1);
  EXPECT_EQ(RelativeError(std::nullopt, replay), std::nullopt);
  EXPECT_EQ(RelativeError(Summarise({Nanos{0}}), replay), std::nullopt);
}

}  // namespace
}  // namespace etude
