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

// Graph of the critical path analysis.
//
// Points are times: 2 * row is a row's start, 2 * row + 1 its end. Points and edges keep the order
// of insertion; adding an edge again replaces its contents.
class PathGraph {
 public:
  explicit PathGraph(size_t rows) : known_(2 * rows, 0) {
    points_.reserve(2 * rows);
    edges_.reserve(3 * rows);
  }

  // Adds an edge. Each edge may be added only once.
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

  // Returns the edges of a longest path; nullopt for a cyclic graph. Ties are resolved by the order
  // of a breadth-first topological sort.
  std::optional<std::vector<uint32_t>> LongestPath() const;

 private:
  void AddPoints(uint32_t from, uint32_t to) {
    for (const uint32_t point : {from, to}) {
      if (known_[point] == 0) points_.push_back(point);
      known_[point] = 1;
    }
  }

  std::vector<uint8_t> known_;
  FlatMap index_;  // edges added by Add
  std::vector<uint32_t> points_;
  std::vector<PathEdge> edges_;
};

}  // namespace etude::compat
