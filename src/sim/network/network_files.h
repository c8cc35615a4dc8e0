#pragma once

#include <string>

#include "src/base/result.h"
#include "src/sim/network/network_graph.h"

namespace etude {

// Makes a network from a file of one of these forms, which are told apart by their content: lists
// of dimensions in ASTRA-sim's form, an InfraGraph (YAML or JSON), or a list of links. Finish() is
// not yet called. docs/models/etude_1.md defines the forms. kBadInput with `path` and the place.
Result<NetworkGraph> ParseNetworkGraph(const std::string& text, const std::string& path);

// Returns whether the text has lists of dimensions in ASTRA-sim's form.
bool IsListOfDims(const std::string& text);
// Returns whether the text is a network that only the model "etude-1" has.
bool NeedsGraph(const std::string& text);

}  // namespace etude
