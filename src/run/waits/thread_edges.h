#pragma once

#include <span>
#include <vector>

#include "src/base/units.h"
#include "src/run/exclusive_times.h"
#include "src/run/waits/order_edge.h"
#include "src/run/waits/program_order.h"
#include "src/trace/trace.h"

namespace etude {

// A thread that did nothing for longer than this may have waited for another one.
inline constexpr Nanos kThreadGap{1'000'000};

// Which thread a thread waited for.
// * What comes next on a thread that called a collective so that it waits at once
//   (IsSynchronous) comes after the label of Gloo's that the collective was done in, which may end
//   some time later, and so does the first node that uses the results of any other collective: an
//   eighth of the time for which the thread did nothing, or 3 ms. One edge per call and storage at
//   most.
// * What comes next on a thread behind Gloo's label of a send or receive of its own comes after it:
//   the label ends when the thread has waited for it.
// * Any other host node that is the first on its thread, or the first after more than kThreadGap
//   without a node of no children and without an operator of ATen's or c10d's, comes after the last
//   node that ended on another thread meanwhile, if there is one; a label of Gloo's that ends soon
//   after the gap comes first: within CommBackend::wakes_early, or an eighth of a long gap. Where
//   the first case says what the node waits for, or what waits for the label, it counts only within
//   CommBackend::wakes_early. One edge per gap; none where the trace says whose a label of Gloo's
//   is.
// `times` has an entry per node of `tree`. O(n log n), whatever the number of threads.
//
// That the one caused the other is a guess in the second case; that it came before, or began
// before, is not.
std::vector<OrderEdge> ThreadEdges(const Trace& tree, std::span<const NodeTime> times);

// The same within each process, where lanes are those of `trace`: ranks that were merged wait for
// each other in communications alone.
std::vector<OrderEdge> ThreadEdgesByProcess(const Trace& trace, std::span<const NodeTime> times);

}  // namespace etude
