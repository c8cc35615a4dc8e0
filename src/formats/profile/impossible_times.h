#pragma once

#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {

// Returns the nodes of a profile whose times are impossible, by comparison with all others.
// Profilers write 0, or uninitialised memory, for times that they could not take. Impossible times
// are:
// - a minority that begins, or ends, more than an hour from all others, and 100 times as far from
//   them as they are from each other
// - device work that began long before the call that launched it
// - work that overlaps all other work of its stream and takes ten times as long as that work with
//   its gaps, although a stream runs one thing at a time
//
// The result is in the order of nodes. O(n log n).
std::vector<NodeId> FindImpossibleTimes(const TraceBuilder& builder);

}  // namespace etude
