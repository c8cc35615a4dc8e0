#include "src/transform/link/right_nesting.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/run/calls/callers.h"
#include "src/run/calls/host_match.h"
#include "src/transform/edit/rewrite.h"

namespace etude {
namespace {

// Max depth: programs do not nest that deep; damaged traces may.
constexpr int kMostLevels = 4096;

// Returns the event of a node or, if it has none, of the first node below it that has one.
NodeId FirstEvent(const Trace& host, const HostMatch& match, NodeId node) {
  for (int level = 0; level < kMostLevels; ++level) {
    if (const NodeId event = match.events[node.index()]) return event;
    const auto children = host.children(node);
    if (children.empty()) break;
    node = *std::ranges::min_element(children, {}, [&](NodeId of) { return host.source_id(of); });
  }
  return NodeId::None();
}

// Returns the node that ran around a host node, by the nesting of their events; kNone if there is
// none.
NodeId NodeAround(const Trace& host, const Trace& device, const HostMatch& match, NodeId node) {
  const NodeId event = FirstEvent(host, match, node);
  NodeId above = event ? device.parent(event) : NodeId::None();
  for (int level = 0; level < kMostLevels && above; ++level) {
    if (const NodeId around = match.nodes[above.index()]) return around;
    above = device.parent(above);
  }
  return NodeId::None();
}

// Assigns callers by the clock to nodes whose caller is missing: PyTorch's observer loses callers
// inside tensor subclasses. A caller is entered before its callees.
void AdoptByTime(const Trace& host, const Trace& device, const HostMatch& match,
                 std::vector<NodeId>& parents) {
  for (const Trace::Dangling& dangling : host.dangling()) {
    const NodeId node = dangling.node;
    const NodeKind kind = host.kind(node);
    const bool is_orphan = dangling.is_parent && !host.parent(node) && !parents[node.index()] &&
                           kind != NodeKind::kProcess && kind != NodeKind::kThread &&
                           kind != NodeKind::kMetadata;
    if (!is_orphan) continue;
    const NodeId around = NodeAround(host, device, match, node);
    if (!around || host.source_id(around) >= host.source_id(node)) continue;
    NodeId above = around;
    for (int level = 0; level < kMostLevels && above && above != node; ++level) {
      above = parents[above.index()] ? parents[above.index()] : host.parent(above);
    }
    if (above.is_none()) parents[node.index()] = around;
  }
}

}  // namespace

Result<std::optional<RightNesting>> SetNestingRight(const Trace& host, const Trace& device,
                                                    const Limits& limits) {
  const bool is_observed = host.traits().is_observed;
  if (!is_observed || host.stats()[Stat::kDuplicateId] != 0) return std::nullopt;
  std::vector<NodeId> nodes = host.NodesBySourceId();
  std::erase_if(nodes, [&](NodeId node) { return host.place(node) == Place::kDevice; });

  std::optional<HostMatch> match;  // computed on demand: times are rarely needed
  const std::vector<uint32_t> callers = FindCallers(host, nodes, [&](NodeId node) {
    if (!match) match = MatchHost(host, device);
    const NodeId event = match->events[node.index()];
    return event ? NodeTimeOf(device, event) : NodeTime{};
  });
  std::vector<NodeId> parents(host.node_count());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (callers[i] == kNoCaller) continue;
    const NodeId caller = nodes[callers[i]];
    if (caller == host.parent(nodes[i])) continue;
    parents[nodes[i].index()] = caller;
  }
  const bool has_orphans =
      std::ranges::any_of(host.dangling(), [](const auto& entry) { return entry.is_parent; });
  if (has_orphans) {
    if (!match) match = MatchHost(host, device);
    AdoptByTime(host, device, *match, parents);
  }
  const auto moved = static_cast<uint64_t>(
      std::ranges::count_if(parents, [](NodeId parent) { return !parent.is_none(); }));
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
