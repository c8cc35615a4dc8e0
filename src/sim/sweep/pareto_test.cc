#include "src/sim/sweep/pareto.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace etude {
namespace {

TEST(Pareto, KeepsWhatNothingBeats) {
  // (2, 2) beats (3, 2) and (2, 3); (1, 9) and (9, 1) are best in one figure.
  EXPECT_EQ(ParetoFront({{3, 2}, {2, 2}, {2, 3}, {1, 9}, {9, 1}}),
            (std::vector<bool>{false, true, false, true, true}));
}

TEST(Pareto, EqualPointsStay) {
  EXPECT_EQ(ParetoFront({{1, 1}, {1, 1}, {1, 2}}), (std::vector<bool>{true, true, false}));
  EXPECT_EQ(ParetoFront({}), std::vector<bool>());
}

TEST(Pareto, AsItIsDefined) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<double>> points(20, std::vector<double>(3));
    for (auto& point : points) {
      for (double& figure : point) figure = static_cast<double>(random() % 5);
    }
    const std::vector<bool> front = ParetoFront(points);
    for (size_t i = 0; i < points.size(); ++i) {
      bool beaten = false;
      for (const auto& other : points) {
        const bool as_good =
            other[0] <= points[i][0] && other[1] <= points[i][1] && other[2] <= points[i][2];
        beaten = beaten || (as_good && other != points[i]);
      }
      EXPECT_EQ(front[i], !beaten);
    }
  }
}

}  // namespace
}  // namespace etude
