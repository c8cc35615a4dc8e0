#include "src/transform/layers/issued_work.h"

#include "src/run/calls/callers.h"

namespace etude {

std::vector<NodeId> FindIssuers(const Trace& trace) {
  std::vector<NodeId> issuers(trace.node_count());
  ForEachNode(trace, [&](NodeId node) {
    if (trace.place(node) == Place::kDevice) return;
    for (NodeId above = node; above && trace.lane_id(above) == trace.lane_id(node);
         above = trace.parent(above)) {
      const NodeId issuer = IssuerOfLabel(trace, above);
      if (!issuer) continue;
      if (trace.lane_id(issuer) != trace.lane_id(node)) issuers[node.index()] = issuer;
      return;
    }
  });
  return issuers;
}

}  // namespace etude
