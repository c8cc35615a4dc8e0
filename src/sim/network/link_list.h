#pragma once

#include <string>

#include "src/base/result.h"
#include "src/sim/network/network_graph.h"

namespace etude {

// Makes a network from a list of links, one a line: two nodes, a bandwidth and a latency, such as
// "0 leaf1 50GB/s 500ns". Nodes that are numbers are NPUs. With "->" between the nodes the link has
// one direction. "#" begins a comment. kBadInput with `path` and the line.
Result<NetworkGraph> ParseLinkList(const std::string& text, const std::string& path);

}  // namespace etude
