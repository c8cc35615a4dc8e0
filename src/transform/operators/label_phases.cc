#include "src/transform/operators/label_phases.h"

#include <optional>

#include "src/run/calls/callers.h"

namespace etude {

std::vector<Phase> PhasesByLabels(const Trace& trace, std::span<const NodeId> order) {
  std::vector<Phase> phases(trace.node_count(), Phase::kForward);
  for (const NodeId node : order) {
    const NodeId parent = trace.parent(node);
    const std::optional<Phase> own = PhaseOfLabel(trace, node);
    if (own || parent) phases[node.index()] = own ? *own : phases[parent.index()];
  }
  // Work on Gloo's threads is inside the labels of its issuer.
  std::vector<bool> is_elsewhere(trace.node_count());
  for (const NodeId node : order) {
    const NodeId issuer = IssuerOfLabel(trace, node);
    const NodeId parent = trace.parent(node);
    const NodeId from = issuer                                   ? issuer
                        : parent && is_elsewhere[parent.index()] ? parent
                                                                 : NodeId::None();
    if (!from) continue;
    is_elsewhere[node.index()] = true;
    phases[node.index()] = phases[from.index()];
  }
  return phases;
}

}  // namespace etude
