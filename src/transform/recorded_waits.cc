#include "src/transform/recorded_waits.h"

#include <algorithm>
#include <utility>

#include "src/trace/exclusive_times.h"
#include "src/trace/record_scope.h"
#include "src/trace/trace_copy.h"
#include "src/transform/device_match.h"
#include "src/transform/program_order.h"
#include "src/transform/sync_edges.h"
#include "src/transform/thread_edges.h"

namespace etude {
namespace {

class WaitFinder {
 public:
  explicit WaitFinder(const Trace& trace)
      : trace_(trace),
        // Nothing is to be linked: no event stands for a host node.
        match_(MatchDevice(trace, std::vector<NodeId>(trace.node_count()))) {}

  std::vector<RecordedWait> Run() {
    if (IsProfile(trace_.info().format)) AddSyncs();
    AddThreads();
    return std::move(waits_);
  }

 private:
  void AddSyncs() {
    const SyncEdges syncs = FindSyncEdges(trace_, match_);
    for (const SyncEdge& edge : syncs.edges) {
      RecordedWait wait{.node = edge.work, .before = edge.before};
      if (!edge.work) {
        wait.node = edge.call;
        wait.in_call = true;
        wait.waited = syncs.waited[edge.call.index()];
      }
      waits_.push_back(wait);
    }
  }

  void AddThreads() {
    std::vector<NodeTime> times(trace_.node_count());
    ForEachNode(trace_, [&](NodeId node) {
      const NodeKind kind = trace_.kind(node);
      // Labels of parts of the program run on threads without working there.
      if (kind == NodeKind::kLabel && !IsWorkingLabel(trace_, node)) return;
      if (kind == NodeKind::kMetadata) return;
      times[node.index()] = NodeTimeOf(trace_, node);
    });
    for (const OrderEdge& edge : ThreadEdgesByProcess(trace_, times)) {
      waits_.push_back({.node = edge.node, .before = edge.before});
    }
  }

  const Trace& trace_;
  DeviceMatch match_;
  std::vector<RecordedWait> waits_;
};

}  // namespace

std::vector<RecordedWait> FindRecordedWaits(const Trace& trace) {
  const TraceFormat format = trace.info().format;
  if (!IsProfile(format) && format != TraceFormat::kNative) return {};
  return WaitFinder(trace).Run();
}

Result<Trace> WithThreadWaits(const Trace& capture, const Limits& limits) {
  TraceBuilder builder(limits, capture);
  TraceCopy copy(capture, builder);
  copy.CopyInfo();
  copy.AddGroups();
  copy.AddStats();
  builder.AddNodesOfBase();
  ForEachNode(capture, [&](NodeId node) {
    const auto deps = capture.deps(node);
    const auto kinds = capture.dep_kinds(node);
    for (size_t i = 0; i < deps.size(); ++i) builder.AddDep(node, deps[i], kinds[i]);
  });
  for (const RecordedWait& wait : FindRecordedWaits(capture)) {
    if (std::ranges::count(capture.deps(wait.node), wait.before) != 0) continue;
    builder.AddDep(wait.node, wait.before, DepKind::kSync);
  }
  return builder.Finish();
}

}  // namespace etude
