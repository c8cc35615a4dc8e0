#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/statistics/points.h"

namespace etude {

struct TsneOptions {
  double perplexity = 5;  // effective number of neighbours; at least 1, less than the other points
  size_t iterations = 1000;
  size_t restarts = 100;
  uint64_t seed = 0;
};

struct TsneMap {
  PointRows points;       // in the plane, centred
  double divergence = 0;  // Kullback-Leibler, nats
};

// Maps points to the plane by exact t-SNE (van der Maaten & Hinton 2008): gradient descent with
// momentum and gains by coordinate, from random places, with early exaggeration. Returns the result
// of the restart with the smallest divergence. Deterministic for the same points and seed on one
// machine. For tens to a few hundred points: time and memory grow with the square of their number.
// Fewer than three points are all at the origin.
TsneMap Tsne(const PointRows& points, const TsneOptions& options);

}  // namespace etude
