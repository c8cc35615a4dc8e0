#include "src/base/statistics/z_scores.h"

#include <cmath>

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(ZScores, SubtractTheMeanAndDivideByTheDeviationOfThePopulation) {
  const PointRows scores = ZScores({{1, 7}, {2, 7}, {3, 7}});
  EXPECT_NEAR(scores[0][0], -std::sqrt(1.5), 1e-12);
  EXPECT_NEAR(scores[1][0], 0, 1e-12);
  EXPECT_NEAR(scores[2][0], std::sqrt(1.5), 1e-12);
  for (const auto& row : scores) EXPECT_EQ(row[1], 0);
}

TEST(ZScores, RoundingIsNoSpread) {
  for (const auto& row : ZScores({{0.1 + 0.2}, {0.3}, {0.3}})) EXPECT_EQ(row[0], 0);
  EXPECT_TRUE(ZScores({}).empty());
}

}  // namespace
}  // namespace etude
