#pragma once

#include <string>

#include "src/base/result.h"
#include "src/sim/network/network_graph.h"

namespace etude {

// Makes a network from an InfraGraph, in YAML or JSON: the schema's form, or the older one with
// `connections`. The components xpu (or npu) are the NPUs, in the order of instances, indices and
// components; all other components are devices of the network. Edges between two components that
// are listed twice are one link. kBadInput with `path` and the place.
Result<NetworkGraph> ParseInfraGraph(const std::string& text, const std::string& path);

}  // namespace etude
