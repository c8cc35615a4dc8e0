#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// When a node ran, as far as is known, and where. Nodes of one lane nest in time.
struct NodeTime {
  std::optional<Nanos> start;
  std::optional<Nanos> duration;
  LaneId lane;
};

inline NodeTime NodeTimeOf(const Trace& trace, NodeId node) {
  return {trace.start(node), trace.duration(node), trace.lane_id(node)};
}

// Of each node.
std::vector<NodeTime> NodeTimesOf(const Trace& trace);

struct ExclusiveTimes {
  // Duration without what nodes below took on the same lane; nullopt where the duration is unknown.
  std::vector<std::optional<Nanos>> times;
  // Nodes that begin before or end after the node above them: only the part inside counts.
  uint64_t overhanging = 0;
};

// `times[i]`: when node i of `tree` ran; parents of the tree say what is below what. A node without
// times hands its children's time on to its own parent, one without a start takes nothing from its
// parent. Integer arithmetic; O(n log n).
ExclusiveTimes FindExclusiveTimes(const Trace& tree, std::span<const NodeTime> times);

// Duration of each node without what runs inside: as the trace says, else by the times of the
// trace. nullopt where the duration is unknown.
std::vector<std::optional<Nanos>> SelfTimes(const Trace& trace);

}  // namespace etude
