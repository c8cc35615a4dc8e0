#include "src/transform/edit/rewrite.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "src/trace/carried_stats.h"
#include "src/trace/program_parts.h"
#include "src/trace/trace_copy.h"

namespace etude {

Result<Trace> RewriteTrace(const Trace& trace, const Limits& limits,
                           const std::function<Status(RewrittenNode&, TraceBuilder&)>& change) {
  TraceBuilder builder(limits, trace);
  TraceCopy copy(trace, builder);
  copy.CopyInfo();
  copy.AddGroups();
  copy.AddStats();
  // References to a shared id mean its first node; positions are distinct.
  const bool by_position = trace.stats()[Stat::kDuplicateId] != 0;
  if (by_position) {
    ForgetParts(builder);
    copy.CountRenumbered();
    CarryStats(builder);
  }
  const auto id_of = [&](NodeId node) {
    return by_position ? uint64_t{node.value()} : trace.source_id(node);
  };
  std::vector<std::optional<uint64_t>> parents(trace.node_count());
  for (size_t i = 0; i < trace.node_count(); ++i) {
    const NodeId node = NodeId::FromIndex(i);
    RewrittenNode rewritten{.node = node, .row = copy.Row(node), .comm = std::nullopt};
    rewritten.row.source_id = id_of(node);
    if (const NodeId parent = trace.parent(node)) rewritten.row.parent = id_of(parent);
    if (const Comm* comm = trace.comm(node)) rewritten.comm = *comm;
    ETUDE_RETURN_IF_ERROR(change(rewritten, builder));
    parents[i] = rewritten.row.parent;
    const NodeId added = builder.AddNode(rewritten.row);
    if (rewritten.comm) builder.SetComm(added, *rewritten.comm);
    for (const Extra& extra : trace.extras(node)) builder.AddExtra(added, extra);
  }
  for (size_t i = 0; i < trace.node_count(); ++i) {
    const NodeId node = NodeId::FromIndex(i);
    const auto deps = trace.deps(node);
    const auto kinds = trace.dep_kinds(node);
    for (size_t k = 0; k < deps.size(); ++k) {
      // The new caller precedes the node in any case.
      const bool is_caller = kinds[k] == DepKind::kControl && parents[i] == id_of(deps[k]);
      if (!is_caller) builder.AddDep(node, deps[k], kinds[k]);
    }
  }
  // New ids must not give dangling references a meaning.
  uint64_t next_dangling = trace.node_count();
  for (const Trace::Dangling& dangling : trace.dangling()) {
    const NodeId cut = trace.Find(dangling.source_id);  // from a cycle
    const uint64_t id = cut ? id_of(cut) : by_position ? next_dangling++ : dangling.source_id;
    if (!dangling.is_parent) {
      builder.AddDep(dangling.node, id, dangling.kind);
    } else if (!parents[dangling.node.index()]) {
      builder.SetParent(dangling.node, id);
    }
  }
  return builder.Finish();
}

}  // namespace etude
