#include "src/transform/right_nesting.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/trace/callers.h"
#include "src/trace/operator_name.h"
#include "src/transform/host_match.h"
#include "src/transform/trace_copy.h"

namespace etude {
namespace {

// `host` with other parents; kNone leaves a node the one it has.
Result<Trace> WithParents(const Trace& host, const std::vector<NodeId>& parents,
                          const Limits& limits) {
  TraceBuilder builder(limits, host);
  TraceCopy copy(host, builder);
  copy.CopyInfo();
  copy.AddGroups();
  copy.AddStats();
  for (size_t i = 0; i < host.node_count(); ++i) {
    const NodeId node = NodeId::FromIndex(i);
    NodeRow row = copy.Row(node);
    const NodeId parent = parents[i] ? parents[i] : host.parent(node);
    if (parent) row.parent = host.source_id(parent);
    copy.AddFacts(node, builder.AddNode(row));
  }
  for (size_t i = 0; i < host.node_count(); ++i) {
    const NodeId node = NodeId::FromIndex(i);
    const auto deps = host.deps(node);
    const auto kinds = host.dep_kinds(node);
    for (size_t k = 0; k < deps.size(); ++k) builder.AddDep(node, deps[k], kinds[k]);
  }
  for (const Trace::Dangling& dangling : host.dangling()) {
    if (!dangling.is_parent) {
      builder.AddDep(dangling.node, dangling.source_id, dangling.kind);
    } else if (!parents[dangling.node.index()]) {
      builder.SetParent(dangling.node, dangling.source_id);
    }
  }
  return builder.Finish();
}

}  // namespace

Result<std::optional<RightNesting>> SetNestingRight(const Trace& host, const Trace& device,
                                                    const Limits& limits) {
  std::vector<NodeId> nodes;
  bool disturbed = false;
  ForEachNode(host, [&](NodeId node) {
    if (host.place(node) == Place::kDevice) return;
    nodes.push_back(node);
    disturbed = disturbed || IsGlooLabel(host.name(node));
  });
  const bool is_observed = host.info().format == TraceFormat::kPyTorchEt;
  if (!is_observed || !disturbed || host.stats()[Stat::kDuplicateId] != 0) return std::nullopt;
  std::ranges::sort(nodes, {}, [&](NodeId node) { return host.source_id(node); });

  const HostMatch match = MatchHost(host, device);
  const std::vector<uint32_t> callers = FindCallers(host, nodes, [&](NodeId node) {
    const NodeId event = match.events[node.index()];
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
  ETUDE_ASSIGN_OR_RETURN(Trace right, WithParents(host, parents, limits));
  return RightNesting{.host = std::move(right), .moved = moved};
}

}  // namespace etude
