#include "src/base/statistics/principal_components.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(PrincipalComponents, OfALineIsItsDirection) {
  const PrincipalComponents found = PrincipalComponentsOf({{1, 1}, {2, 2}, {3, 3}});
  ASSERT_EQ(found.variances.size(), 2U);
  EXPECT_NEAR(found.variances[0], 2, 1e-12);  // of 1, 2, 3 in both columns
  EXPECT_NEAR(found.variances[1], 0, 1e-12);
  EXPECT_NEAR(found.axes[0][0], std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(found.axes[0][1], std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(found.coordinates[0][0], -std::sqrt(2), 1e-12);
  EXPECT_NEAR(found.coordinates[2][0], std::sqrt(2), 1e-12);
  EXPECT_EQ(found.CountFor(0.9), 1U);
}

TEST(PrincipalComponents, OfAnEllipseAreItsAxes) {
  // Covariance {{2, 1}, {1, 2}} · 4/3: eigenvalues 4 and 4/3 along the diagonals.
  const PrincipalComponents found = PrincipalComponentsOf(
      {{std::sqrt(3), std::sqrt(3)}, {-std::sqrt(3), -std::sqrt(3)}, {1, -1}, {-1, 1}});
  EXPECT_NEAR(found.variances[0], 4, 1e-12);
  EXPECT_NEAR(found.variances[1], 4.0 / 3, 1e-12);
  EXPECT_EQ(found.CountFor(0.7), 1U);
  EXPECT_EQ(found.CountFor(0.9), 2U);
}

TEST(PrincipalComponents, AreUncorrelatedAndKeepDistances) {
  const PointRows points = {
      {1, 5, -2, 0.5}, {4, 1, 0, 2}, {-3, 2, 2, 1}, {0, 0, 7, -1}, {2, -4, 1, 3}};
  const PrincipalComponents found = PrincipalComponentsOf(points);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      double product = 0;
      for (const auto& row : found.coordinates) product += row[i] * row[j];
      EXPECT_NEAR(product / 4, i == j ? found.variances[i] : 0, 1e-9);
      EXPECT_NEAR(std::inner_product(found.axes[i].begin(), found.axes[i].end(),
                                     found.axes[j].begin(), 0.0),
                  i == j ? 1 : 0, 1e-12);
    }
  }
  EXPECT_NEAR(SquaredDistance(points[0], points[3]),
              SquaredDistance(found.coordinates[0], found.coordinates[3]), 1e-9);
}

TEST(PrincipalComponents, OfOnePointHaveNoVariance) {
  EXPECT_EQ(PrincipalComponentsOf({{3, 4}}).variances, (std::vector<double>{0, 0}));
  EXPECT_TRUE(PrincipalComponentsOf({}).variances.empty());
}

}  // namespace
}  // namespace etude
