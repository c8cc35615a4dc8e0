#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Time and lane of a node, as far as known. Nodes of one lane nest in time.
struct NodeTime {
  std::optional<Nanos> start;
  std::optional<Nanos> duration;
  LaneId lane;
};

inline NodeTime NodeTimeOf(const Trace& trace, NodeId node) {
  return {trace.start(node), trace.duration(node), trace.lane_id(node)};
}

// Returns the time of each node.
std::vector<NodeTime> NodeTimesOf(const Trace& trace);

struct ExclusiveTimes {
  // Duration excluding nodes below on the same lane; nullopt if the duration is unknown.
  std::vector<std::optional<Nanos>> times;
  // Nodes that begin before or end after the node above them; only the part inside counts.
  uint64_t overhanging = 0;
};

// Computes exclusive durations. `times[i]` is the time of node i of `tree`; parents of the tree
// define the nesting. A node without times passes its children's time on to its own parent; one
// without a start takes nothing from its parent. Integer arithmetic; O(n log n).
ExclusiveTimes FindExclusiveTimes(const Trace& tree, std::span<const NodeTime> times);

// Returns the duration of each node excluding the nodes inside: as recorded, else by the times of
// the trace. nullopt if the duration is unknown.
std::vector<std::optional<Nanos>> SelfTimes(const Trace& trace);

}  // namespace etude
