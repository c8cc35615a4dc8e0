#include "src/base/statistics/hull_area.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(HullArea, IgnoresPointsInside) {
  EXPECT_NEAR(HullArea({{0, 0}, {1, 1}, {0.5, 0.2}, {1, 0}, {0, 1}, {0.5, 0}}), 1, 1e-12);
  EXPECT_NEAR(HullArea({{0, 0}, {4, 0}, {0, 3}}), 6, 1e-12);
}

TEST(HullArea, OfALineIsZero) {
  EXPECT_EQ(HullArea({{0, 0}, {1, 1}, {2, 2}}), 0);
  EXPECT_EQ(HullArea({{5, 5}, {5, 5}, {5, 5}}), 0);
  EXPECT_EQ(HullArea({{1, 2}}), 0);
  EXPECT_EQ(HullArea({}), 0);
}

}  // namespace
}  // namespace etude
