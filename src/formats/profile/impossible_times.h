#pragma once

#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {

// The nodes of a profile whose times cannot be true, by comparison with all others. Profilers write
// 0, or what was in memory, for times that they could not take. These are:
// - a minority that begins more than an hour from all others, and 100 times as far from them as
// they
//   are from each other, or that ends so far behind them;
// - work of devices that began long before the call that launched it;
// - work that takes ten times as long as all other work of its stream together with the gaps, and
//   overlaps it: a stream runs one thing at a time.
// In the order of nodes. O(n log n).
std::vector<NodeId> FindImpossibleTimes(const TraceBuilder& builder);

}  // namespace etude
