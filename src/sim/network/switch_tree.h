#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/sim/network/network_graph.h"

namespace etude {

// Links over which switches reduce data of some NPUs and multicast the result: a tree whose root is
// a device of the network. Ways of several members that meet continue together.
struct SwitchTree {
  uint32_t root = 0;                        // node
  std::vector<std::vector<uint32_t>> up;    // by member: links from the member to the root
  std::vector<std::vector<uint32_t>> down;  // by member: links from the root to the member
};

// Finds the tree of NPUs that differ in one dimension, at least two. The root is the device whose
// farthest member is nearest; of several, the one whose members are nearest in total, and then a
// choice by the first member. Ways are over the fewest links, wide ones first, and not over other
// NPUs. kBadInput if the members differ in several dimensions, or no device connects them.
Result<SwitchTree> FindSwitchTree(const NetworkGraph& graph, std::span<const int64_t> members);

}  // namespace etude
