#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/container/intervals.h"
#include "src/base/units.h"
#include "src/run/longest_path.h"
#include "src/run/path_part.h"
#include "src/trace/trace.h"

namespace etude {

// Returns true if a host thread works in the node.
bool IsHostWork(const Trace& trace, NodeId node);
// Returns the part that the node's own time belongs to.
PathPart PathPartOf(const Trace& trace, NodeId node);

// Meaning of an edge's weight, and of the time that the edge spans beyond its weight.
struct RunStep {
  NodeId node;
  PathPart part = PathPart::kHost;
  PathPart beside = PathPart::kIdle;
  bool is_own = false;    // the weight is the node's own time
  bool is_woken = false;  // from the node's begin to the point that continued before its end
};

// Graph of necessary order: two points per node, its begin and its end.
class RunGraph {
 public:
  explicit RunGraph(const Trace& trace) : numbers_(trace.node_count(), kAbsent) {}

  void AddNode(NodeId node) {
    numbers_[node.index()] = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back(node);
  }
  bool has(NodeId node) const { return node && numbers_[node.index()] != kAbsent; }
  uint32_t begin(NodeId node) const { return 2 * numbers_[node.index()]; }
  uint32_t end(NodeId node) const { return 2 * numbers_[node.index()] + 1; }
  NodeId node_at(uint32_t point) const { return nodes_[point / 2]; }
  const std::vector<NodeId>& nodes() const { return nodes_; }
  size_t points() const { return 2 * nodes_.size(); }

  size_t AddEdge(uint32_t from, uint32_t to, Nanos weight, const RunStep& step) {
    edges_.push_back({from, to, weight});
    steps_.push_back(step);
    return edges_.size() - 1;
  }
  std::span<const PathEdge> edges() const { return edges_; }
  PathEdge& edge(size_t number) { return edges_[number]; }
  const PathEdge& edge(size_t number) const { return edges_[number]; }
  const RunStep& step(size_t number) const { return steps_[number]; }
  size_t edge_count() const { return edges_.size(); }
  LongestPath Solve() const { return FindLongestPath(points(), edges_); }

 private:
  static constexpr uint32_t kAbsent = UINT32_MAX;

  std::vector<uint32_t> numbers_;  // by node
  std::vector<NodeId> nodes_;
  std::vector<PathEdge> edges_;
  std::vector<RunStep> steps_;
};

// A run as recorded, from starts and durations.
struct TimedGraph {
  RunGraph graph;                // edges go forward in time and weigh at most the time between
  std::optional<Interval> span;  // of the nodes; nullopt if there are none
  uint64_t untimed = 0;          // operators and work without times
  uint64_t contradictions = 0;   // dependencies left out because times contradict them

  // Returns the begin or end time of a point's node.
  Nanos TimeOfPoint(const Trace& trace, uint32_t point) const {
    const NodeId node = graph.node_at(point);
    const Nanos begin = *trace.start(node);
    return point % 2 == 0 ? begin : begin + *trace.duration(node);
  }
};

// Makes the graph; docs/models/critical_path.md describes the edges. O(n log n).
TimedGraph MakeTimedGraph(const class RecordedRun& run);

}  // namespace etude
