#pragma once

#include <cstdint>
#include <string>

#include "src/base/result.h"
#include "src/sim/network/network_graph.h"

namespace etude {

// Makes the network of a file in ASTRA-sim's form, with the topologies of docs/models/etude_1.md:
// Ring, Mesh, FullyConnected, Switch, FatTree and Dragonfly. Finish() is not yet called. kBadInput
// with `path` and the value.
Result<NetworkGraph> MakeNetwork(const std::string& text, const std::string& path);

}  // namespace etude
