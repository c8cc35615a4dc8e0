#pragma once

#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Returns, by node, the call that issued the communication in which a host node of another thread
// runs, as on Gloo's threads; kNone for all other nodes. O(nodes · depth).
std::vector<NodeId> FindIssuers(const Trace& trace);

}  // namespace etude
