#include "src/base/units.h"

#include <limits>

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(Nanos, AreScaledTowardsZero) {
  EXPECT_EQ(Scaled(Nanos{10}, 0.29), Nanos{2});
  EXPECT_EQ(Scaled(Nanos{-10}, 0.29), Nanos{-2});
  EXPECT_EQ(Scaled(Nanos{10}, 1), Nanos{10});
  EXPECT_EQ(Scaled(Nanos{10}, 0), Nanos{0});
  EXPECT_EQ(TruncatedNanos(1.999), Nanos{1});
}

TEST(Nanos, SaturateWhenScaled) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Scaled(Nanos{INT64_MAX}, 1), Nanos{INT64_MAX}) << "2^63 as a double";
  EXPECT_EQ(Scaled(Nanos{INT64_MIN}, 1), Nanos{INT64_MIN});
  EXPECT_EQ(Scaled(Nanos{INT64_MAX}, 2), Nanos{INT64_MAX});
  EXPECT_EQ(Scaled(Nanos{INT64_MAX}, -2), Nanos{INT64_MIN});
  EXPECT_EQ(Scaled(Nanos{1}, kInfinity), Nanos{INT64_MAX});
  EXPECT_EQ(Scaled(Nanos{1}, -kInfinity), Nanos{INT64_MIN});
  EXPECT_EQ(TruncatedNanos(9223372036854774784.0), Nanos{9'223'372'036'854'774'784})
      << "the greatest double below 2^63";
}

TEST(Nanos, OfNoNumberAreTheLeastTime) {
  EXPECT_EQ(Scaled(Nanos{0}, std::numeric_limits<double>::infinity()), Nanos{INT64_MIN});
  EXPECT_EQ(TruncatedNanos(std::numeric_limits<double>::quiet_NaN()), Nanos{INT64_MIN});
}

}  // namespace
}  // namespace etude
