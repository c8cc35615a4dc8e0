#pragma once

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

// Returns true for a Kineto trace with only device work and its runtime calls, without operators or
// labels: the native recorder makes one beside its capture.
bool IsOfDevicesOnly(const Trace& profile);

// Returns the profile that PyTorch's profiler would have made of the run. `native` is its capture,
// read with the recorder's time included, and `devices` the profile of its devices. Calls of the
// capture are host events, on its clock, with the runtime calls on the threads that made them; the
// capture's facts of values are kept. Threads missing from the capture keep the names from the
// profile.
//
// kBadInput if the capture does not relate its clock to the wall clock. O(n log n).
Result<Trace> MakeNativeProfile(const Trace& native, const Trace& devices, const Limits& limits);

}  // namespace etude
