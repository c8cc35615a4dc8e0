#include "src/sim/machine/graph_machine.h"

#include <memory>
#include <utility>

namespace etude {

Status UseGraph(NetworkGraph graph, std::span<const std::string> slow_links,
                const std::string& where, SimMachine& machine) {
  for (const std::string& text : slow_links) {
    const Status slowed = graph.Slow(text);
    if (!slowed) return MakeError(ErrorCode::kUsage, "--slow-link: " + slowed.error().message);
  }
  ETUDE_RETURN_IF_ERROR(graph.Finish(where));
  machine.dims.clear();
  for (const NetworkDimInfo& dim : graph.dims()) {
    machine.dims.push_back({.shape = NetworkShape::kGraph, .npus = dim.npus});
  }
  machine.graph = std::make_shared<const NetworkGraph>(std::move(graph));
  return {};
}

}  // namespace etude
