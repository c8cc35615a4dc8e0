#pragma once

#include <span>
#include <vector>

#include "src/trace/trace.h"
#include "src/trace/words/phase.h"

namespace etude {

// Returns the phase of each node by the labels around it: those of Optimizer.… and of autograd's
// functions; nodes outside any are forward. Gloo's work on its own threads has the phase of the
// call. `order`: parents before their children. Device work is not inside labels: it belongs to its
// launcher.
std::vector<Phase> PhasesByLabels(const Trace& trace, std::span<const NodeId> order);

}  // namespace etude
