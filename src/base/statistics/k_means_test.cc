#include "src/base/statistics/k_means.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

using Labels = std::vector<size_t>;

TEST(KMeans, TwoPairsAreTwoClusters) {
  const Clusters found = KMeans({{10}, {0}, {1}, {11}}, 2, {});
  EXPECT_EQ(found.labels, (Labels{0, 1, 1, 0}));
  EXPECT_EQ(found.centres, (PointRows{{10.5}, {0.5}}));
  EXPECT_NEAR(found.inertia, 4 * 0.25, 1e-12);
}

TEST(KMeans, EachPointMayBeACluster) {
  const Clusters found = KMeans({{1, 2}, {3, 4}, {5, 0}}, 3, {});
  EXPECT_EQ(found.labels, (Labels{0, 1, 2}));
  EXPECT_NEAR(found.inertia, 0, 1e-12);
}

TEST(KMeans, EqualPointsShareACluster) {
  const Clusters found = KMeans({{1}, {1}, {1}, {2}}, 3, {.restarts = 5});
  EXPECT_EQ(found.labels, (Labels{0, 0, 0, 1}));
  EXPECT_EQ(found.centres.size(), 3U);
}

TEST(KMeans, RestartsFindTheBestOfSeveralOptima) {
  // Four pairs in a row: with unlucky seeds two pairs share a centre, for an inertia of 26 or more.
  const PointRows points = {{0}, {1}, {5}, {6}, {10}, {11}, {15}, {16}};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_NEAR(KMeans(points, 4, {.restarts = 50, .seed = seed}).inertia, 2, 1e-12);
  }
}

TEST(Silhouettes, OfTwoPairs) {
  const std::vector<double> found = Silhouettes({{0}, {1}, {10}, {11}}, {0, 0, 1, 1});
  EXPECT_NEAR(found[0], 9.5 / 10.5, 1e-12);  // 1 to its neighbour, 10.5 to the others
  EXPECT_NEAR(found[1], 8.5 / 9.5, 1e-12);
  EXPECT_NEAR(found[2], 8.5 / 9.5, 1e-12);
  EXPECT_NEAR(MeanSilhouette({{0}, {1}, {10}, {11}}, {0, 0, 1, 1}), (9.5 / 10.5 + 8.5 / 9.5) / 2,
              1e-12);
}

TEST(Silhouettes, APointAloneHasNone) {
  const std::vector<double> found = Silhouettes({{0}, {4}, {6}}, {0, 1, 1});
  EXPECT_EQ(found[0], 0);
  EXPECT_NEAR(found[1], (4.0 - 2) / 4, 1e-12);
  EXPECT_NEAR(found[2], (6.0 - 2) / 6, 1e-12);
  EXPECT_EQ(MeanSilhouette({{1}, {2}}, {0, 0}), 0);  // no other cluster
  EXPECT_EQ(MeanSilhouette({}, {}), 0);
}

}  // namespace
}  // namespace etude
