#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// The number by which a call of the runtime and the device work that it launched are linked;
// nullopt also for correlations of 0 and below, which is what the profiler writes where it knows
// none.
std::optional<int64_t> LaunchCorrelation(const Trace& trace, NodeId node);

// By node: for device nodes the host node that started them, as far as the trace tells: the nearest
// host node above, else the runtime call of the same correlation; kNone else and for host nodes.
// O(nodes).
std::vector<NodeId> FindLaunchers(const Trace& trace);

// What calls of the runtime do, by their names, of whatever runtime: launch a kernel or a graph;
// begin and end what is captured into a graph.
bool LaunchesWork(std::string_view call);
bool BeginsCapture(std::string_view call);
bool EndsCapture(std::string_view call);

// Whether a call of this name may ask for a kernel to begin before the one before it on its stream
// has ended (programmatic dependent launch): cudaLaunchKernelExC, cuLaunchKernelEx.
bool MayLaunchEarly(std::string_view call);

// Key of the extra with the name of such a call, as a JSON string, on a kernel of a linked trace,
// which has no calls of the runtime.
inline constexpr std::string_view kLaunchedByKey = "launched_by";
// Returns whether a kernel of a linked trace has such a call.
bool HasEarlyLaunch(const Trace& linked, NodeId kernel);

}  // namespace etude
