#pragma once

#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/run/waits/order_edge.h"
#include "src/trace/trace.h"

namespace etude {

// Who waited for whom in a device trace: calls for device work, streams for each other
// (sync_edges.h), threads for threads (thread_edges.h). In a native capture the threads alone.
// Empty for traces of other formats, which have what linking found among their dependencies. O(n
// log n).
std::vector<OrderEdge> FindRecordedWaits(const Trace& trace);

// A native capture with these among its dependencies, for formats of which nothing else says them.
Result<Trace> WithThreadWaits(const Trace& capture, const Limits& limits);

}  // namespace etude
