#pragma once

#include <span>
#include <vector>

#include "src/trace/trace.h"
#include "src/trace/words/phase.h"

namespace etude {

// The phase of each node by the labels around it: those of Optimizer.… and of autograd's functions;
// what none is around is forward. What Gloo does on threads of its own has the phase of the call.
// `order`: parents before their children. Work of devices has no label around it: it belongs to who
// launched it.
std::vector<Phase> PhasesByLabels(const Trace& trace, std::span<const NodeId> order);

}  // namespace etude
