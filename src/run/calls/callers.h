#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "src/run/exclusive_times.h"
#include "src/trace/trace.h"

namespace etude {

inline constexpr uint32_t kNoCaller = UINT32_MAX;

// The operator that asked for the collective whose work a label of Gloo's stands for: one that the
// label depends on (readers add that), but does not merely wait for, or is called by. kNone if
// unknown, and for all other nodes.
NodeId IssuerOfLabel(const Trace& trace, NodeId node);

// Whether the node, on the thread that asked for it, ran beside what the thread did meanwhile:
// Gloo's label of a send or receive, which ends when the program has waited for it, if that was
// after the call that began it.
bool RunsBesideItsThread(const Trace& trace, NodeId node);

// Whether the node, a call of c10d's, stands for a collective whose label was lost: its time is
// that of asking for it. Calls return before it is over, those of which the program waits at once
// too.
bool StandsForLostLabel(const Trace& trace, NodeId node);

// Arguments of c10d's operators into whose memory collectives put their results.
inline constexpr auto kResultArguments = std::to_array<std::string_view>(
    {"output_tensors", "output_tensor", "output", "outputs", "tensors"});

// Whether an argument of this name of c10d's operators says that they do not wait for themselves.
bool IsAsyncFlag(std::string_view argument);
// Whether the operator, one of c10d's, was called so that its thread waits for it at once.
bool IsSynchronous(const Trace& trace, NodeId node);

// For each of `nodes`, which are a trace's host nodes or some of them in order of entry, the
// position of its caller among them, or kNoCaller. A caller is entered before what it calls; where
// a trace says otherwise its nesting is ignored.
//
// The nesting that the trace states decides, but for three cases:
// * Gloo ends its labels on threads of its own while PyTorch's observer counts them among the calls
//   of the thread that asked for the collective, which so seem left when they are not, and the
//   other way round. Among nodes with such labels the clock decides, as far as `time_of` knows it.
// * Where it is known which operator asked for a collective that was done on another thread
//   (IssuerOfLabel), the label there is called by it, and what ran inside by the label.
// * Operators on threads of PyTorch's own pool, among which an operator divides its work, have no
//   caller on their thread. One is called by an operator that was running on another thread and
//   that itself made the same call there, on the same memory. That counts for a thread if it holds
//   for all that has no caller on it: what a program runs on threads of its own stays without.
std::vector<uint32_t> FindCallers(const Trace& trace, std::span<const NodeId> nodes,
                                  const std::function<NodeTime(NodeId)>& time_of);

}  // namespace etude
