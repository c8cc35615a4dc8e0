#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Returns the number that links a runtime call and the device work that it launched; nullopt also
// for correlations <= 0, which the profiler writes if unknown.
std::optional<int64_t> LaunchCorrelation(const Trace& trace, NodeId node);

// Returns the host node that started each device node: the nearest host node above, else the
// runtime call with the same correlation; kNone if unknown, and for host nodes. O(nodes).
std::vector<NodeId> FindLaunchers(const Trace& trace);

// Classify calls of any runtime by name: launch of a kernel or a graph; begin and end of capture
// into a graph.
bool LaunchesWork(std::string_view call);
bool BeginsCapture(std::string_view call);
bool EndsCapture(std::string_view call);

// Returns true for calls that may start a kernel before the previous one on its stream has ended
// (programmatic dependent launch): cudaLaunchKernelExC, cuLaunchKernelEx.
bool MayLaunchEarly(std::string_view call);

// Key of an extra on a kernel of a linked trace, which has no runtime calls: name of the launching
// call, as JSON.
inline constexpr std::string_view kLaunchedByKey = "launched_by";
// Returns whether a kernel of a linked trace has such a call.
bool HasEarlyLaunch(const Trace& linked, NodeId kernel);

}  // namespace etude
