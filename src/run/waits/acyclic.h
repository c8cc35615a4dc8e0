#pragma once

#include <cstddef>
#include <vector>

#include "src/run/waits/order_edge.h"
#include "src/trace/trace.h"

namespace etude {

// "Program order" is the order of entry: depth first, siblings by id. Parents are edges that always
// hold. Each function returns a flag per edge.

// Selects the edges to remove so that no node waits for itself: those on a cycle that contradict
// program order. All false if there is no cycle. O(nodes + edges).
std::vector<bool> FindBackwardEdges(const Trace& trace, const std::vector<OrderEdge>& edges);

// Selects the edges from number `given` on that contradict the acyclic ones before it; the
// remaining edges are acyclic. O(edges + nodes log nodes).
std::vector<bool> FindContradictions(const Trace& trace, const std::vector<OrderEdge>& edges,
                                     size_t given);

}  // namespace etude
