#include "src/run/waits/recorded_waits.h"

#include <algorithm>
#include <utility>

#include "src/run/calls/device_match.h"
#include "src/run/exclusive_times.h"
#include "src/run/waits/program_order.h"
#include "src/run/waits/sync_edges.h"
#include "src/run/waits/thread_edges.h"
#include "src/trace/trace_copy.h"
#include "src/trace/words/record_scope.h"

namespace etude {
namespace {

class WaitFinder {
 public:
  explicit WaitFinder(const Trace& trace)
      : trace_(trace),
        // Without linking: no event is matched with a host node.
        match_(MatchDevice(trace, std::vector<NodeId>(trace.node_count()))) {}

  std::vector<OrderEdge> Run() {
    if (trace_.traits().is_profile) AddSyncs();
    AddThreads();
    return std::move(waits_);
  }

 private:
  void AddSyncs() {
    const SyncEdges syncs = FindSyncEdges(trace_, match_);
    waits_.insert(waits_.end(), syncs.edges.begin(), syncs.edges.end());
  }

  void AddThreads() {
    std::vector<NodeTime> times(trace_.node_count());
    ForEachNode(trace_, [&](NodeId node) {
      const NodeKind kind = trace_.kind(node);
      // Labels of program parts mark threads without working there.
      if (kind == NodeKind::kLabel && !IsWorkingLabel(trace_, node)) return;
      if (kind == NodeKind::kMetadata) return;
      times[node.index()] = NodeTimeOf(trace_, node);
    });
    const std::vector<OrderEdge> edges = ThreadEdgesByProcess(trace_, times);
    waits_.insert(waits_.end(), edges.begin(), edges.end());
  }

  const Trace& trace_;
  DeviceMatch match_;
  std::vector<OrderEdge> waits_;
};

}  // namespace

std::vector<OrderEdge> FindRecordedWaits(const Trace& trace) {
  if (!trace.traits().waits_in_times) return {};
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
  for (const OrderEdge& wait : FindRecordedWaits(capture)) {
    if (std::ranges::count(capture.deps(wait.node), wait.before) != 0) continue;
    builder.AddDep(wait.node, wait.before, DepKind::kSync);
  }
  return builder.Finish();
}

}  // namespace etude
