#include "src/base/statistics/t_sne.h"

#include <cmath>

#include <gtest/gtest.h>

namespace etude {
namespace {

double Distance(const TsneMap& map, size_t a, size_t b) {
  return std::sqrt(SquaredDistance(map.points[a], map.points[b]));
}

TEST(Tsne, EquidistantPointsStayEquidistant) {
  // All pairs have the probability 1/6 on both sides: no divergence.
  const TsneMap map = Tsne({{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {.perplexity = 1.9});
  EXPECT_NEAR(map.divergence, 0, 1e-6);
  EXPECT_NEAR(Distance(map, 0, 1) / Distance(map, 1, 2), 1, 1e-3);
  EXPECT_NEAR(Distance(map, 0, 2) / Distance(map, 1, 2), 1, 1e-3);
}

TEST(Tsne, NeighboursStayTogether) {
  PointRows points;
  for (int i = 0; i < 12; ++i) {
    const double side = i < 6 ? 0 : 10;
    points.push_back({side + std::sin(i), side + std::cos(3.0 * i), 0.1 * i});
  }
  const TsneMap map = Tsne(points, {.perplexity = 4, .restarts = 5});
  for (size_t i = 0; i < 6; ++i) {
    double own = 0;
    double others = 1e9;
    for (size_t j = 0; j < 12; ++j) {
      if (j < 6) own = std::max(own, Distance(map, i, j));
      if (j >= 6) others = std::min(others, Distance(map, i, j));
    }
    EXPECT_LT(own, others) << i;
  }
  EXPECT_GT(map.divergence, 0);
  EXPECT_LT(map.divergence, 1);
}

TEST(Tsne, IsDeterministicAndCentred) {
  const PointRows points = {{0, 1}, {2, 5}, {3, 3}, {8, 1}, {9, 9}};
  const TsneMap map = Tsne(points, {.perplexity = 2, .restarts = 2, .seed = 7});
  EXPECT_EQ(map.points, Tsne(points, {.perplexity = 2, .restarts = 2, .seed = 7}).points);
  double sum = 0;
  for (const auto& point : map.points) sum += point[0];
  EXPECT_NEAR(sum, 0, 1e-9);
}

TEST(Tsne, EqualPointsAndFewPointsAreNoProblem) {
  EXPECT_EQ(Tsne({{1}, {2}}, {}).points, (PointRows{{0, 0}, {0, 0}}));
  const TsneMap map = Tsne({{1}, {1}, {1}, {1}, {5}}, {.perplexity = 2, .restarts = 1});
  for (const auto& point : map.points) EXPECT_TRUE(std::isfinite(point[0]));
}

}  // namespace
}  // namespace etude
