#include "src/base/statistics/kendall_tau.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace etude {
namespace {

using Figures = std::vector<double>;

TEST(KendallTau, CountsDiscordantPairs) {
  EXPECT_NEAR(*KendallTau(Figures{1, 2, 3, 4}, Figures{10, 20, 30, 40}), 1, 1e-12);
  EXPECT_NEAR(*KendallTau(Figures{1, 2, 3, 4}, Figures{1, 2, 4, 3}), 4.0 / 6, 1e-12);
  EXPECT_NEAR(*KendallTau(Figures{1, 2, 3}, Figures{3, 2, 1}), -1, 1e-12);
}

TEST(KendallTau, TiesCountOnTheirSide) {
  // Two concordant pairs; two of three are not tied on the first side.
  EXPECT_NEAR(*KendallTau(Figures{1, 1, 2}, Figures{1, 2, 3}), 2 / std::sqrt(6), 1e-12);
  EXPECT_NEAR(*KendallTau(Figures{1, 1, 2}, Figures{5, 5, 6}), 1, 1e-12);
  EXPECT_FALSE(KendallTau(Figures{1, 1}, Figures{1, 2}).has_value());
  EXPECT_FALSE(KendallTau(Figures{1}, Figures{1}).has_value());
}

TEST(KendallTau, OneDiscordantPairOf28IsAbove09) {
  const Figures all = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_NEAR(*KendallTau(all, Figures{1, 2, 3, 5, 4, 6, 7, 8}), 26.0 / 28, 1e-12);
  EXPECT_NEAR(*KendallTau(all, Figures{2, 1, 3, 5, 4, 6, 7, 8}), 24.0 / 28, 1e-12);
}

TEST(KendallInterval, ContainsTauAndIsDeterministic) {
  const Figures a = {1, 2, 3, 4, 5, 6, 7, 8};
  const Figures b = {2, 1, 3, 5, 4, 6, 8, 7};
  const auto interval = KendallInterval(a, b, 1, 2000);
  ASSERT_TRUE(interval.has_value());
  EXPECT_LT(interval->low, *KendallTau(a, b));
  EXPECT_GT(interval->high, *KendallTau(a, b));
  EXPECT_EQ(interval->low, KendallInterval(a, b, 1, 2000)->low);
  const auto same = KendallInterval(a, a, 1, 100);
  EXPECT_EQ(same->low, 1);
  EXPECT_EQ(same->high, 1);
  EXPECT_FALSE(KendallInterval(Figures{1, 1}, Figures{1, 2}, 1, 100).has_value());
}

}  // namespace
}  // namespace etude
