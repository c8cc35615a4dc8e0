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

// Returns the operator that issued the collective of a Gloo label: one that the label depends on
// (readers add that dependency), other than by synchronization or as its caller. kNone if unknown,
// and for all other nodes.
NodeId IssuerOfLabel(const Trace& trace, NodeId node);

// Returns true for a node that ran concurrently with its issuing thread: Gloo's label of a send or
// receive, which ends when the program has waited for it, if that was after the call that began it.
bool RunsBesideItsThread(const Trace& trace, NodeId node);

// Returns true for a c10d call that stands for a collective with a lost label. Its time is that of
// issuing the collective: such calls return before it is over, even if the program waits for it at
// once.
bool StandsForLostLabel(const Trace& trace, NodeId node);

// Arguments of c10d operators that receive the results of collectives.
inline constexpr auto kResultArguments = std::to_array<std::string_view>(
    {"output_tensors", "output_tensor", "output", "outputs", "tensors"});

// Returns true if a c10d argument of this name marks operators that do not wait for themselves.
bool IsAsyncFlag(std::string_view argument);
// Returns true if the c10d operator was called such that its thread waits for it at once.
bool IsSynchronous(const Trace& trace, NodeId node);

// Returns, for each of `nodes` (host nodes of a trace in order of entry), the position of its
// caller among them, or kNoCaller. A caller is entered before its callees; nesting that contradicts
// this is ignored.
//
// The nesting in the trace decides, with three exceptions:
// * Gloo ends its labels on its own threads, while PyTorch's observer counts them among the calls
//   of the issuing thread, so that calls seem to end too early or too late. Among nodes with such
//   labels the clock decides, as far as `time_of` has times.
// * If the issuing operator of a collective on another thread is known (IssuerOfLabel), it is the
//   caller of the label, and the label the caller of the nodes inside.
// * Operators on threads of PyTorch's own pool, over which an operator divides its work, have no
//   caller on their thread. The caller is an operator that was running on another thread and made
//   the same call there, on the same memory. This applies to a thread only if it holds for all its
//   nodes without a caller: nodes on a program's own threads stay without one.
std::vector<uint32_t> FindCallers(const Trace& trace, std::span<const NodeId> nodes,
                                  const std::function<NodeTime(NodeId)>& time_of);

}  // namespace etude
