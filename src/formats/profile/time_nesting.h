#pragma once

#include <cstdint>
#include <vector>

#include "src/base/units.h"
#include "src/trace/value.h"

namespace etude {

// A node with a beginning and an end on a lane.
struct TimedNode {
  NodeId node;
  LaneId lane;
  Nanos start;
  Nanos end;
  bool has_end = false;  // without one the node contains nothing
};

struct Nesting {
  NodeId node;
  NodeId parent;
};

// Finds for each node the smallest node of the same lane that contains its time, if any. If several
// nodes have the same time, the first one given contains the others. A node that begins where
// another ends is not in it, unless its duration is 0, because whole microseconds make such nodes
// of an operator's last callees. Nodes that overlap without containing each other are unrelated.
// O(n log n).
std::vector<Nesting> NestByTime(std::vector<TimedNode> nodes);

}  // namespace etude
