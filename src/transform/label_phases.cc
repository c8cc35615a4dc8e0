#include "src/transform/label_phases.h"

#include <optional>

namespace etude {

std::vector<Phase> PhasesByLabels(const Trace& trace, std::span<const NodeId> order) {
  std::vector<Phase> phases(trace.node_count(), Phase::kForward);
  for (const NodeId node : order) {
    const NodeId parent = trace.parent(node);
    const std::optional<Phase> own = PhaseOfLabel(trace, node);
    if (own || parent) phases[node.index()] = own ? *own : phases[parent.index()];
  }
  return phases;
}

}  // namespace etude
