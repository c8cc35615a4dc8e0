#include "src/transform/recorded_waits.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "src/trace/exclusive_times.h"
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
    AddSyncs();
    AddGuessedSyncs();
    AddThreads();
    return std::move(waits_);
  }

 private:
  bool IsTimed(NodeId node) const { return trace_.start(node) && trace_.duration(node); }
  Nanos Begin(NodeId node) const { return *trace_.start(node); }
  Nanos End(NodeId node) const { return *trace_.start(node) + *trace_.duration(node); }

  void AddSyncs() {
    const SyncEdges syncs = FindSyncEdges(trace_, match_);
    for (const SyncEdge& edge : syncs.edges) {
      if (edge.work) known_.insert(edge.work);
      RecordedWait wait{.node = edge.work, .before = edge.before};
      if (!edge.work) {
        wait.node = edge.call;
        wait.in_call = true;
        wait.waited = syncs.waited[edge.call.index()];
        known_.insert(edge.call);
      }
      waits_.push_back(wait);
    }
  }

  // A piece of device work by when it ended.
  struct Ended {
    Nanos end;
    NodeId work;
  };

  void AddGuessedSyncs() {
    std::vector<Ended> ended;
    ForEachNode(trace_, [&](NodeId node) {
      if (trace_.place(node) != Place::kDevice || !IsDeviceWork(trace_.kind(node))) return;
      if (IsTimed(node)) ended.push_back({End(node), node});
    });
    std::ranges::stable_sort(ended, {}, &Ended::end);
    std::vector<NodeId> stream_waits;
    ForEachNode(trace_, [&](NodeId call) {
      if (trace_.kind(call) != NodeKind::kRuntime || !IsTimed(call)) return;
      const auto kind = WaitingCall(trace_.name(call));
      if (kind == SyncKind::kStreamWait) stream_waits.push_back(call);
      if (known_.contains(call) || (kind != SyncKind::kEventSync && kind != SyncKind::kStreamSync &&
                                    kind != SyncKind::kDeviceSync)) {
        return;
      }
      const NodeId work = LastEnded(ended, {Begin(call), End(call)}, Begin(call), LaneId());
      if (!work) return;
      waits_.push_back(
          {.node = call, .before = work, .in_call = true, .waited = End(work) - Begin(call)});
    });
    AddGuessedStreamWaits(ended, stream_waits);
  }

  // The first work that a thread launches after it told a stream to wait.
  void AddGuessedStreamWaits(const std::vector<Ended>& ended, const std::vector<NodeId>& calls) {
    if (calls.empty()) return;
    std::vector<NodeId> launched = LaunchedWork();
    const auto key = [&](NodeId work) {
      const NodeId launch = match_.launches[work.index()];
      return std::tuple(trace_.lane_id(launch), Begin(launch), work);
    };
    std::ranges::sort(launched, {}, key);
    for (const NodeId call : calls) {
      const auto next = std::ranges::lower_bound(
          launched, std::tuple(trace_.lane_id(call), Begin(call), NodeId(0)), {}, key);
      if (next == launched.end()) continue;
      const NodeId launch = match_.launches[next->index()];
      if (trace_.lane_id(launch) != trace_.lane_id(call) || known_.contains(*next)) continue;
      const NodeId before =
          LastEnded(ended, {Begin(launch), Begin(*next)}, Begin(launch), trace_.lane_id(*next));
      if (before) waits_.push_back({.node = *next, .before = before});
      known_.insert(*next);
    }
  }

  std::vector<NodeId> LaunchedWork() const {
    std::vector<NodeId> launched;
    ForEachNode(trace_, [&](NodeId node) {
      const NodeId launch = match_.launches[node.index()];
      if (launch && IsTimed(node) && IsTimed(launch)) launched.push_back(node);
    });
    return launched;
  }

  struct Window {
    Nanos begin;
    Nanos end;
  };

  // The last work to end within `window` (its end included) of those launched by `launched`, not
  // on `stream`.
  NodeId LastEnded(const std::vector<Ended>& ended, const Window& window, Nanos launched,
                   LaneId stream) const {
    // Work that other threads launched meanwhile is passed over; hostile traces have a lot of it.
    constexpr int kMost = 256;
    auto next = std::ranges::upper_bound(ended, window.end, {}, &Ended::end);
    for (int i = 0; i < kMost && next != ended.begin(); ++i) {
      --next;
      if (next->end <= window.begin) break;
      if (stream && trace_.lane_id(next->work) == stream) continue;
      const NodeId launch = match_.launches[next->work.index()];
      const Nanos at = launch && trace_.start(launch) ? Begin(launch) : Begin(next->work);
      if (at <= launched) return next->work;
    }
    return NodeId::None();
  }

  void AddThreads() {
    std::vector<NodeTime> times(trace_.node_count());
    ForEachNode(trace_, [&](NodeId node) {
      const NodeKind kind = trace_.kind(node);
      // Labels run on threads without working there.
      if (kind == NodeKind::kLabel || kind == NodeKind::kMetadata) return;
      times[node.index()] = {.start = trace_.start(node),
                             .duration = trace_.duration(node),
                             .lane = trace_.lane_id(node)};
    });
    for (const OrderEdge& edge : ThreadEdges(trace_, times)) {
      waits_.push_back({.node = edge.node, .before = edge.before});
    }
  }

  const Trace& trace_;
  DeviceMatch match_;
  std::vector<RecordedWait> waits_;
  std::unordered_set<NodeId> known_;  // calls and work of which is known what they waited for
};

}  // namespace

std::vector<RecordedWait> FindRecordedWaits(const Trace& trace) {
  if (trace.info().format != TraceFormat::kKineto) return {};
  return WaitFinder(trace).Run();
}

}  // namespace etude
