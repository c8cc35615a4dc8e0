#pragma once

#include <vector>

#include "src/formats/timeline/timeline.h"
#include "src/trace/trace.h"

namespace etude {

// What goes on beside the slices, as far as the trace tells; counters that would be 0 throughout
// are left out. O(n log n).
//
//  * "queue of stream N": device work that was launched and has not begun, by the beginning of its
//    launch (FindLaunchers);
//  * "communication": bytes per second, each communication spread over its duration, where size and
//    duration are known;
//  * "tensors on D": bytes of the storages on device D between their first and last use by an
//    operator with times. An address that is used again counts in between.
std::vector<Counter> TimelineCounters(const Trace& trace);

}  // namespace etude
