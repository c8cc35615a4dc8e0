#include "src/suite/nn/area_under_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

double Area(const std::vector<float>& scores, const std::vector<float>& labels) {
  return AreaUnderCurve(FromValues(scores, {std::ssize(scores)}),
                        FromValues(labels, {std::ssize(labels)}));
}

// Values of scikit-learn's roc_auc_score.
TEST(AreaUnderCurve, CountsPairsInOrder) {
  EXPECT_DOUBLE_EQ(Area({0.1F, 0.4F, 0.35F, 0.8F}, {0, 0, 1, 1}), 0.75);
  EXPECT_DOUBLE_EQ(Area({1, 2, 3, 4}, {0, 0, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(Area({4, 3, 2, 1}, {0, 0, 1, 1}), 0);
}

TEST(AreaUnderCurve, EqualScoresCountOneHalf) {
  EXPECT_DOUBLE_EQ(Area({5, 5, 5, 5}, {0, 1, 0, 1}), 0.5);
  EXPECT_DOUBLE_EQ(Area({1, 2, 2, 3}, {0, 0, 1, 1}), 0.875);
}

TEST(AreaUnderCurve, IsUndefinedForOneClass) {
  EXPECT_TRUE(std::isnan(Area({1, 2}, {1, 1})));
  EXPECT_TRUE(std::isnan(Area({1, 2}, {0, 0})));
}

}  // namespace
}  // namespace etude::suite
