#pragma once

#include <span>
#include <vector>

#include "src/base/units.h"
#include "src/run/exclusive_times.h"
#include "src/run/waits/order_edge.h"
#include "src/run/waits/program_order.h"
#include "src/trace/trace.h"

namespace etude {

// Min idle time after which a thread may have waited for another one.
inline constexpr Nanos kThreadGap{1'000'000};

// Finds the waits of threads for other threads.
// * The next node of a thread after a synchronous collective (IsSynchronous), and the first node
//   that uses the results of any other collective, come after the Gloo label of the collective. The
//   label may end somewhat later than they begin, by an eighth of the thread's idle time, or 3 ms.
//   At most one edge per call and storage.
// * The next node of a thread after the Gloo label of its own send or receive comes after that
//   label, which ends when the thread has waited for it.
// * Any other host node that is the first on its thread, or the first after more than kThreadGap
//   without a leaf node and without an ATen or c10d operator, comes after the last node that ended
//   on another thread in that gap, if there is one. A Gloo label that ends soon after the gap has
//   precedence: within CommBackend::wakes_early, or an eighth of a long gap. If the first rule
//   already determines the node's wait, or the label's waiter, it counts only within
//   CommBackend::wakes_early. One edge per gap; none if the trace states the issuers of Gloo's
//   labels.
//
// `times` has an entry per node of `tree`. O(n log n), for any number of threads.
//
// In the last rule causation is a guess; that the one node came before, or began before, is
// certain.
std::vector<OrderEdge> ThreadEdges(const Trace& tree, std::span<const NodeTime> times);

// Finds the waits within each process, with lanes of `trace`: merged ranks wait for each other only
// in communications.
std::vector<OrderEdge> ThreadEdgesByProcess(const Trace& trace, std::span<const NodeTime> times);

}  // namespace etude
