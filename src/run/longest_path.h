#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/base/units.h"

namespace etude {

// Edge from point `from` to point `to`; `weight` must not be negative.
struct PathEdge {
  uint32_t from = 0;
  uint32_t to = 0;
  Nanos weight;
};

struct LongestPath {
  std::vector<uint32_t> edges;  // edge numbers, in order; empty if no edge has a weight
  Nanos length;
  uint64_t dropped = 0;  // edges left out because they close a cycle
};

// Returns the path with the max total weight through `points` points. Ties are broken by the order
// of the edges. Points on a cycle are visited in the order of their numbers. O(points + edges).
LongestPath FindLongestPath(size_t points, std::span<const PathEdge> edges);

}  // namespace etude
