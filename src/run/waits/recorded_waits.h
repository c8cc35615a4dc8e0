#pragma once

#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/run/waits/order_edge.h"
#include "src/trace/trace.h"

namespace etude {

// Returns the waits in a device trace: calls for device work, streams for each other
// (sync_edges.h), threads for threads (thread_edges.h). In a native capture only threads for
// threads. Empty for traces of other formats, whose dependencies contain the waits found by
// linking. O(n log n).
std::vector<OrderEdge> FindRecordedWaits(const Trace& trace);

// Returns a native capture with these waits among its dependencies, for formats that record them no
// other way.
Result<Trace> WithThreadWaits(const Trace& capture, const Limits& limits);

}  // namespace etude
