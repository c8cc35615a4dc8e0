#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/base/units.h"

namespace etude {

// From point `from` to point `to` it takes `weight`, which is not negative.
struct PathEdge {
  uint32_t from = 0;
  uint32_t to = 0;
  Nanos weight;
};

struct LongestPath {
  std::vector<uint32_t> edges;  // their numbers, in order; empty if no edge has a weight
  Nanos length;
  uint64_t dropped = 0;  // edges left out because they close a cycle
};

// The path of the greatest weight through `points` points. Of equal ones that which comes first in
// the order of the edges. Where there is a cycle, points go in the order of their numbers.
// O(points + edges).
LongestPath FindLongestPath(size_t points, std::span<const PathEdge> edges);

}  // namespace etude
