#include "src/transform/right_nesting.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/trace/callers.h"
#include "src/transform/host_match.h"
#include "src/transform/rewrite.h"

namespace etude {
Result<std::optional<RightNesting>> SetNestingRight(const Trace& host, const Trace& device,
                                                    const Limits& limits) {
  const bool is_observed = host.info().format == TraceFormat::kPyTorchEt;
  if (!is_observed || host.stats()[Stat::kDuplicateId] != 0) return std::nullopt;
  std::vector<NodeId> nodes = host.NodesBySourceId();
  std::erase_if(nodes, [&](NodeId node) { return host.place(node) == Place::kDevice; });

  std::optional<HostMatch> match;  // mostly nobody asks for times
  const std::vector<uint32_t> callers = FindCallers(host, nodes, [&](NodeId node) {
    if (!match) match = MatchHost(host, device);
    const NodeId event = match->events[node.index()];
    return event ? NodeTimeOf(device, event) : NodeTime{};
  });
  std::vector<NodeId> parents(host.node_count());
  uint64_t moved = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (callers[i] == kNoCaller) continue;
    const NodeId caller = nodes[callers[i]];
    if (caller == host.parent(nodes[i])) continue;
    parents[nodes[i].index()] = caller;
    ++moved;
  }
  if (moved == 0) return std::nullopt;
  ETUDE_ASSIGN_OR_RETURN(Trace right,
                         RewriteTrace(host, limits, [&](RewrittenNode& node, TraceBuilder&) {
                           const NodeId parent = parents[node.node.index()];
                           if (parent) node.row.parent = host.source_id(parent);
                           return Status();
                         }));
  return RightNesting{.host = std::move(right), .moved = moved};
}

}  // namespace etude
