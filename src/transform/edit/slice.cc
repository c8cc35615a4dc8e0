#include "src/transform/edit/slice.h"

#include <utility>
#include <vector>

#include "src/run/calls/launch.h"
#include "src/trace/carried_stats.h"
#include "src/trace/program_parts.h"
#include "src/trace/trace_builder.h"
#include "src/trace/trace_copy.h"

namespace etude {
namespace {

class Slicer {
 public:
  Slicer(const Trace& trace, std::vector<bool> kept, const Limits& limits)
      : trace_(trace), kept_(std::move(kept)), builder_(limits), copy_(trace, builder_) {}

  void KeepLaunched() {
    const std::vector<NodeId> launchers = FindLaunchers(trace_);
    const std::vector<bool> selected = kept_;
    ForEachNode(trace_, [&](NodeId node) {
      const NodeId launcher = launchers[node.index()];
      if (kept_[node.index()] || !launcher || !selected[launcher.index()]) return;
      kept_[node.index()] = true;
      ++result_.launched;
    });
  }

  void KeepAround() {
    ForEachNode(trace_, [&](NodeId node) {
      if (!kept_[node.index()]) return;
      NodeId above = trace_.parent(node);
      while (above && !kept_[above.index()]) {
        kept_[above.index()] = true;
        ++result_.around;
        above = trace_.parent(above);
      }
    });
  }

  Result<SliceResult> Run() {
    result_.renumbered = trace_.stats()[Stat::kDuplicateId] != 0;
    copy_.CopyInfo();
    if (result_.renumbered) ForgetParts(builder_);
    copy_.AddGroups();
    copy_.AddStats();
    std::vector<NodeId> copies(trace_.node_count());
    ForEachNode(trace_, [&](NodeId node) {
      if (kept_[node.index()]) copies[node.index()] = CopyNode(node);
    });
    ForEachNode(trace_, [&](NodeId node) {
      if (kept_[node.index()]) CopyDeps(node, copies);
    });
    for (const Trace::Dangling& dangling : trace_.dangling()) {
      if (kept_[dangling.node.index()]) ++result_.dangling;
    }
    copy_.CountRenumbered();
    if (!trace_.traits().states_order || result_.renumbered) CarryStats(builder_);
    ETUDE_ASSIGN_OR_RETURN(result_.trace, builder_.Finish());
    return std::move(result_);
  }

 private:
  uint64_t IdOf(NodeId node) const {
    return result_.renumbered ? node.value() : trace_.source_id(node);
  }

  NodeId CopyNode(NodeId node) {
    NodeRow row = copy_.Row(node);
    row.source_id = IdOf(node);
    if (const NodeId parent = trace_.parent(node)) row.parent = IdOf(parent);
    const NodeId copy = builder_.AddNode(row);
    copy_.AddFacts(node, copy);
    return copy;
  }

  void CopyDeps(NodeId node, const std::vector<NodeId>& copies) {
    const auto deps = trace_.deps(node);
    const auto kinds = trace_.dep_kinds(node);
    for (size_t i = 0; i < deps.size(); ++i) {
      if (const NodeId dep = copies[deps[i].index()]) {
        builder_.AddDep(copies[node.index()], dep, kinds[i]);
      } else {
        ++result_.cut_dependencies;
      }
    }
  }

  const Trace& trace_;
  std::vector<bool> kept_;
  TraceBuilder builder_;
  TraceCopy copy_;
  SliceResult result_;
};

}  // namespace

Result<SliceResult> Slice(const Trace& trace, const Selection& selection, const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(SelectedNodes selected, SelectNodes(trace, selection));
  Slicer slicer(trace, std::move(selected.nodes), limits);
  if (selection.streams.empty()) slicer.KeepLaunched();
  slicer.KeepAround();
  ETUDE_ASSIGN_OR_RETURN(SliceResult result, slicer.Run());
  result.selected = selected.count;
  result.untimed = selected.untimed;
  return result;
}

}  // namespace etude
