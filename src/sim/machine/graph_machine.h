#pragma once

#include <span>
#include <string>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"
#include "src/sim/network/network_graph.h"

namespace etude {

// Makes the graph the network of the machine. `slow_links`: texts for NetworkGraph::Slow. Returns
// kUsage for invalid slow links, and kBadInput, prefixed with `where`, for NPUs without a path to
// each other.
Status UseGraph(NetworkGraph graph, std::span<const std::string> slow_links,
                const std::string& where, SimMachine& machine);

}  // namespace etude
