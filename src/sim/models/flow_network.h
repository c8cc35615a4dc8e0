#pragma once

#include <memory>

#include "src/sim/models/sim_network_model.h"

namespace etude {

// Makes "etude-1/flows": after the latencies of its path, a message is a flow that shares the links
// of the path by max-min fairness. Requires SimInput::machine.graph.
// With classes of ranks, a message represents one of each rank of its class.
std::unique_ptr<SimNetworkModel> MakeFlowNetwork(const SimInput& input, SimTimeline& timeline,
                                                 TieWatch& ties);

}  // namespace etude
