#pragma once

#include <vector>

#include "src/formats/timeline/timeline.h"
#include "src/trace/trace.h"

namespace etude {

// Returns counters beside the slices, as far as recorded, without those that are always 0. O(n log
// n).
//
//  * "queue of stream N": device work that was launched and has not begun, by the begin of its
//    launch (FindLaunchers);
//  * "communication": bytes per second, each communication spread over its duration, if size and
//    duration are known;
//  * "tensors on D": bytes of the storages on device D between their first and last use by an
//    operator with times. A reused address counts in between.
std::vector<Counter> TimelineCounters(const Trace& trace);

}  // namespace etude
