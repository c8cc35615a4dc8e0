#pragma once

#include <cstddef>
#include <vector>

#include "src/run/waits/order_edge.h"
#include "src/trace/trace.h"

namespace etude {

// "The program's order" is the one in which it came to the nodes: depth first, siblings by id.
// Parents are edges that always hold. Each function returns a flag per edge.

// Which of `edges` must go so that no node waits for itself: those that lie on a cycle and
// contradict the program's order. All false if there is no cycle. O(nodes + edges).
std::vector<bool> FindBackwardEdges(const Trace& trace, const std::vector<OrderEdge>& edges);

// Which of the edges from number `given` on contradict those before it, which have no cycle: with
// the others there is none either. O(edges + nodes log nodes).
std::vector<bool> FindContradictions(const Trace& trace, const std::vector<OrderEdge>& edges,
                                     size_t given);

}  // namespace etude
