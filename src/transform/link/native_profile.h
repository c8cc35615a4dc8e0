#pragma once

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

// Whether a Kineto trace holds what devices did and the runtime's calls for them, and no operators
// or labels: the native recorder has such a one made beside its capture.
bool IsOfDevicesOnly(const Trace& profile);

// The profile that PyTorch's profiler would have made of the run of which `native` is the capture,
// read with its recorder's time in it, and `devices` the profile of its devices. Calls of the
// capture are host events, on its clock, with the runtime's calls on the threads that made them;
// what the capture knows of values stays with them. Threads that the capture does not have keep the
// names that the profile gives them.
//
// kBadInput if the capture does not say how its clock and the wall clock compare. O(n log n).
Result<Trace> MakeNativeProfile(const Trace& native, const Trace& devices, const Limits& limits);

}  // namespace etude
