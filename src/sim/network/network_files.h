#pragma once

#include <string>

#include "src/base/result.h"
#include "src/sim/network/network_graph.h"

namespace etude {

// Makes a network from a file of one of these forms, which are told apart by their content: lists
// of dimensions in ASTRA-sim's form, an InfraGraph (YAML or JSON), or a list of links. Finish() is
// not yet called. docs/models/etude_1.md defines the forms. kBadInput with `path` and the place.
Result<NetworkGraph> ParseNetworkGraph(const std::string& text, const std::string& path);

}  // namespace etude
