#include "src/base/statistics/chi_square.h"

#include <cmath>

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(ChiSquare, QuantilesOfTables) {
  EXPECT_NEAR(ChiSquareQuantile(0.95, 1), 3.841459, 1e-6);
  EXPECT_NEAR(ChiSquareQuantile(0.05, 4), 0.710723, 1e-6);
  EXPECT_NEAR(ChiSquareQuantile(0.95, 10), 18.307038, 1e-6);
  EXPECT_NEAR(ChiSquareQuantile(0.05, 39), 25.695390, 1e-6);
}

TEST(ChiSquare, WithTwoDegreesIsExponential) {
  for (const double p : {0.001, 0.05, 0.5, 0.95, 0.999}) {
    EXPECT_NEAR(ChiSquareQuantile(p, 2), -2 * std::log(1 - p), 1e-9);
    EXPECT_NEAR(ChiSquareProbability(-2 * std::log(1 - p), 2), p, 1e-12);
  }
  EXPECT_EQ(ChiSquareProbability(0, 2), 0);
}

TEST(ChiSquare, SeriesAndFractionMeet) {
  for (const double freedom : {1.0, 3.0, 10.0, 200.0}) {
    const double at = freedom + 2;  // where the formula changes
    EXPECT_NEAR(ChiSquareProbability(at - 1e-9, freedom), ChiSquareProbability(at + 1e-9, freedom),
                1e-9);
  }
}

}  // namespace
}  // namespace etude
