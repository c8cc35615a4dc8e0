#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/compat/chakra/flat_map.h"

namespace etude::compat {

enum class PathEdgeType : uint8_t { kSpan, kSync };

struct PathEdge {
  uint32_t from = 0;
  uint32_t to = 0;
  double weight = 0;
  PathEdgeType type = PathEdgeType::kSpan;
};

// What the critical path analysis looks for a path in.
//
// Points in time: 2 * row is a row's start, 2 * row + 1 its end. Points and edges keep the order in
// which they were added; an edge added again replaces the first one's contents.
class PathGraph {
 public:
  explicit PathGraph(size_t rows) : known_(2 * rows, 0) {
    points_.reserve(2 * rows);
    edges_.reserve(3 * rows);
  }

  // Adds an edge that no other call adds.
  void AddNew(uint32_t from, uint32_t to, double weight) {
    AddPoints(from, to);
    edges_.push_back({from, to, weight, PathEdgeType::kSpan});
  }
  void Add(uint32_t from, uint32_t to, double weight, PathEdgeType type) {
    AddPoints(from, to);
    const auto fresh = static_cast<uint32_t>(edges_.size());
    const uint32_t found = index_.Insert((uint64_t{from} << 32) | to, fresh);
    if (found == fresh) {
      edges_.push_back({from, to, weight, type});
    } else {
      edges_[found].weight = weight;
      edges_[found].type = type;
    }
  }

  std::vector<PathEdge>& edges() { return edges_; }
  bool empty() const { return edges_.empty(); }

  // The edges of a longest path, or nullopt if there is a cycle. Of equal ones, what comes first in
  // the order of a breadth-first topological sort.
  std::optional<std::vector<uint32_t>> LongestPath() const;

 private:
  void AddPoints(uint32_t from, uint32_t to) {
    for (const uint32_t point : {from, to}) {
      if (known_[point] == 0) points_.push_back(point);
      known_[point] = 1;
    }
  }

  std::vector<uint8_t> known_;
  FlatMap index_;  // of edges that Add added
  std::vector<uint32_t> points_;
  std::vector<PathEdge> edges_;
};

}  // namespace etude::compat
