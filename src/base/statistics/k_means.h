#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/statistics/points.h"

namespace etude {

struct Clusters {
  std::vector<size_t> labels;  // of each point, numbered by first appearance
  PointRows centres;           // by label
  double inertia = 0;          // sum of squared distances to the centres
};

struct KMeansOptions {
  size_t restarts = 100;
  uint64_t seed = 0;
};

// Divides points into `count` clusters by Lloyd's method (1982) from k-means++ seeds (Arthur &
// Vassilvitskii 2007), and returns the result of the restart with the smallest inertia.
// Deterministic for the same points and seed. Requires 1 ≤ count ≤ number of points. With fewer
// different points than `count`, some labels do not appear and their centres are copies.
Clusters KMeans(const PointRows& points, size_t count, const KMeansOptions& options);

// Returns the silhouette of each point (Rousseeuw 1987), −1 to 1: (b − a) / max(a, b) with its mean
// distance a to the other points of its cluster, and the smallest mean distance b to another
// cluster. 0 for a point alone in its cluster.
std::vector<double> Silhouettes(const PointRows& points, const std::vector<size_t>& labels);
// Returns their mean; 0 without points.
double MeanSilhouette(const PointRows& points, const std::vector<size_t>& labels);

}  // namespace etude
