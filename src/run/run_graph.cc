#include "src/run/run_graph.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "src/base/container/csr.h"
#include "src/run/activity.h"
#include "src/run/calls/callers.h"
#include "src/run/exclusive_times.h"
#include "src/run/recorded_run.h"
#include "src/run/waits/host_times.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/record_scope.h"

namespace etude {
namespace {

// Makes the graph of a run from starts and durations.
class RunMaker {
 public:
  explicit RunMaker(const RecordedRun& run)
      : run_(run),
        trace_(run.trace()),
        waits_(run.waits()),
        launches_(run.launches()),
        graph_(run.trace()) {}

  TimedGraph Run() {
    times_.resize(trace_.node_count());
    ForEachNode(trace_, [&](NodeId node) { AddNode(node); });
    FindWaitedTimes();
    if (streams_.empty()) host_ = run_.host_times();
    SortLanes();
    began_.resize(trace_.node_count());
    ended_.resize(trace_.node_count());
    for (const auto& [lane, nodes] : threads_) AddThread(lane, nodes);
    CollectWaits();
    for (const auto& [stream, nodes] : streams_) AddStream(stream, nodes);
    AddHostWaits();
    return {.graph = std::move(graph_),
            .span = span_,
            .untimed = untimed_,
            .contradictions = contradictions_};
  }

 private:
  using Lanes = std::map<LaneId, std::vector<NodeId>>;

  void AddNode(NodeId node) {
    const bool on_device = DeviceActivity(trace_, node) != Activity::kNone;
    if (!on_device && !IsHostWork(trace_, node) && !IsWorkingLabel(trace_, node)) return;
    const auto time = TimeOf(trace_, node);
    if (!time) {
      ++untimed_;
      return;
    }
    graph_.AddNode(node);
    times_[node.index()] = *time;
    if (!span_) span_ = time;
    span_->begin = std::min(span_->begin, time->begin);
    span_->end = std::max(span_->end, time->end);
    const LaneId lane = trace_.lane_id(node);
    if (on_device) {
      streams_[lane].push_back(node);
    } else if (lane && !RunsBesideItsThread(trace_, node)) {
      threads_[lane].push_back(node);
    } else {
      AddOwn(node);
    }
  }

  // For nodes of the graph.
  Nanos Begin(NodeId node) const { return times_[node.index()].begin; }
  Nanos End(NodeId node) const { return times_[node.index()].end; }
  Nanos At(uint32_t point) const {
    const NodeId node = graph_.node_at(point);
    return point % 2 == 0 ? Begin(node) : End(node);
  }

  // Keeps sorted data contiguous: lanes have millions of nodes.
  void SortLanes() {
    struct Timed {
      Interval time;
      NodeId node;
    };
    const auto before = [](const Timed& a, const Timed& b) {
      if (a.time.begin != b.time.begin) return a.time.begin < b.time.begin;
      return a.time.end != b.time.end ? a.time.end > b.time.end : a.node < b.node;
    };
    std::vector<Timed> timed;
    for (Lanes* lanes : {&threads_, &streams_}) {
      for (auto& [lane, nodes] : *lanes) {
        timed.clear();
        for (const NodeId node : nodes) timed.push_back({times_[node.index()], node});
        if (std::ranges::is_sorted(timed, before)) continue;
        std::ranges::sort(timed, before);
        std::ranges::transform(timed, nodes.begin(), &Timed::node);
      }
    }
  }

  // Sorts nodes by end; of nodes that end together, the last begun ends first.
  std::vector<NodeId> ByEnd(const std::vector<NodeId>& nodes) const {
    struct Ended {
      Nanos end;
      uint32_t number = 0;
    };
    std::vector<Ended> ended;
    ended.reserve(nodes.size());
    for (const NodeId node : nodes) {
      ended.push_back({End(node), static_cast<uint32_t>(ended.size())});
    }
    std::ranges::sort(ended, [](const Ended& a, const Ended& b) {
      return a.end != b.end ? a.end < b.end : a.number > b.number;
    });
    std::vector<NodeId> by_end;
    by_end.reserve(nodes.size());
    for (const Ended& one : ended) by_end.push_back(nodes[one.number]);
    return by_end;
  }

  // Finds the time in which nodes only waited for others. In a linked trace, exclusive durations
  // are shorter by it.
  void FindWaitedTimes() {
    waited_.resize(trace_.node_count());
    for (const OrderEdge& wait : waits_) {
      if (wait.in_call && graph_.has(wait.node)) waited_[wait.node.index()] = wait.waited;
    }
    if (!trace_.traits().is_linked) return;
    const ExclusiveTimes self = FindExclusiveTimes(trace_, NodeTimesOf(trace_));
    for (const NodeId node : graph_.nodes()) {
      const auto known = trace_.exclusive(node);
      const auto measured = self.times[node.index()];
      if (trace_.place(node) == Place::kHost && known && measured && *known < *measured) {
        waited_[node.index()] = *measured - *known;
      }
    }
  }

  void AddOwn(NodeId node) {
    graph_.AddEdge(graph_.begin(node), graph_.end(node), End(node) - Begin(node),
                   {node, PathPartOf(trace_, node), PathPart::kIdle, /*is_own=*/true});
  }

  // Joins the points of a thread, the begins and ends of its nodes, in order of time. The time
  // between two points belongs to the innermost open node, except for the time that the thread
  // waited for others; without an open node nothing was recorded.
  void AddThread(LaneId lane, const std::vector<NodeId>& nodes) {
    const TimeSet waited = host_ != nullptr ? host_->waits(lane) : TimeSet();
    const std::vector<NodeId> by_end = ByEnd(nodes);
    std::vector<size_t> added;
    std::vector<NodeId> open;
    uint32_t last = 0;
    bool any = false;
    const auto visit = [&](uint32_t point) {
      while (!open.empty() && ended_[open.back().index()]) open.pop_back();
      if (any) {
        const NodeId inside = open.empty() ? NodeId::None() : open.back();
        const NodeId node = inside ? inside : graph_.node_at(point);
        const Interval time{At(last), At(point)};
        const Nanos passed = inside ? time.length() - waited.Within(time) : Nanos{};
        added.push_back(graph_.AddEdge(
            last, point, passed,
            {node, PathPartOf(trace_, node), inside ? PathPart::kHostWait : PathPart::kIdle,
             /*is_own=*/inside != NodeId::None()}));
      }
      last = point;
      any = true;
    };
    size_t next = 0;
    for (const NodeId node : by_end) {
      // A node that takes no time begins before it ends.
      while (next < nodes.size() && (Begin(nodes[next]) < End(node) || !began_[node.index()])) {
        const NodeId entered = nodes[next++];
        visit(graph_.begin(entered));
        began_[entered.index()] = true;
        open.push_back(entered);
      }
      visit(graph_.end(node));
      ended_[node.index()] = true;
    }
    // A linked trace lacks the position of waits in a node: assume its end, as in programs.
    for (size_t i = added.size(); i-- > 0;) {
      Nanos& left = waited_[graph_.step(added[i]).node.index()];
      Nanos& weight = graph_.edge(added[i]).weight;
      const Nanos taken = std::min(left, weight);
      left = left - taken;
      weight = weight - taken;
    }
  }

  // Collects the trace's dependencies and synchronization edges, by the waiting node.
  void CollectWaits() {
    ForEachNode(trace_, [&](NodeId node) {
      for (size_t i = 0; i < trace_.deps(node).size(); ++i) {
        const NodeId dep = trace_.deps(node)[i];
        const bool waits = trace_.dep_kinds(node)[i] == DepKind::kSync;
        const NodeId waiter = waits && !graph_.has(node) ? NextOnThread(node) : node;
        if (!graph_.has(dep) || !graph_.has(waiter)) continue;
        // A caller's begin precedes its callees, but its end does not.
        if (End(dep) > Begin(waiter) && trace_.place(dep) == Place::kHost) continue;
        AddWait(waiter, dep);
      }
      AddAsked(node);
    });
    for (const OrderEdge& wait : waits_) {
      if (!wait.in_call && graph_.has(wait.node) && graph_.has(wait.before)) {
        AddWait(wait.node, wait.before);
      }
    }
    before_ = Csr<NodeId>::Build(
        trace_.node_count(), found_waits_, [](const Wait& wait) { return wait.node.index(); },
        [](const Wait& wait) { return wait.before; });
  }

  // A Gloo label may begin on its thread before the call that issued it returns.
  void AddAsked(NodeId label) {
    const NodeId issuer = IssuerOfLabel(trace_, label);
    if (!graph_.has(issuer) || !graph_.has(label)) return;
    const bool is_part =
        trace_.lane_id(issuer) == trace_.lane_id(label) && !RunsBesideItsThread(trace_, label);
    if (is_part || Begin(issuer) > Begin(label)) return;
    if (End(issuer) <= Begin(label)) {
      AddWait(label, issuer);
      return;
    }
    graph_.AddEdge(graph_.begin(issuer), graph_.begin(label), Begin(label) - Begin(issuer),
                   {issuer, PathPartOf(trace_, issuer), PathPart::kIdle});
  }

  // Returns the first working node on the thread of a label, from its beginning on.
  NodeId NextOnThread(NodeId label) const {
    const auto start = trace_.start(label);
    const auto thread = threads_.find(trace_.lane_id(label));
    if (!start || thread == threads_.end()) return NodeId::None();
    const auto next = std::ranges::lower_bound(thread->second, *start, {},
                                               [&](NodeId node) { return Begin(node); });
    return next == thread->second.end() ? NodeId::None() : *next;
  }

  void AddWait(NodeId node, NodeId before) {
    const bool is_woken = End(before) > Begin(node) && Begin(before) < Begin(node) &&
                          IsHostThreadLabel(trace_.name(before));
    if (is_woken) {
      // The path runs through the part of the collective that had passed.
      graph_.AddEdge(graph_.begin(before), graph_.begin(node), Begin(node) - Begin(before),
                     {.node = before,
                      .part = PathPart::kCommunication,
                      .beside = PathPart::kHostWait,
                      .is_woken = true});
      return;
    }
    if (End(before) > Begin(node)) {
      ++contradictions_;
      return;
    }
    found_waits_.push_back({node, before});
  }

  // Adds the work of a stream. Work begins after its latest predecessor, which explains the time
  // until then.
  void AddStream(LaneId lane, const std::vector<NodeId>& nodes) {
    const bool has_order = lane && trace_.lane(lane).stream >= 0;
    NodeId last;  // the predecessor that ends last
    for (const NodeId node : nodes) {
      AddOwn(node);
      const PathPart part = PathPartOf(trace_, node);
      NodeId latest = has_order ? last : NodeId::None();
      const NodeId beside = latest && End(latest) > Begin(node) ? latest : NodeId::None();
      if (beside) latest = NodeId::None();
      const std::span<const NodeId> waits = before_[node.index()];
      for (const NodeId before : waits) {
        if (!latest || End(before) > End(latest)) latest = before;
      }
      const auto launched = launches_.time(node);
      const NodeId launcher = launches_.launcher(node);
      const bool by_launch = launched && graph_.has(launcher) && *launched <= Begin(node) &&
                             (!latest || *launched > End(latest)) &&
                             (!beside || *launched > Begin(beside));
      const bool by_beside = beside && !by_launch && (!latest || End(latest) <= Begin(beside));
      if (by_launch) {
        graph_.AddEdge(graph_.begin(launcher), graph_.begin(node), Begin(node) - *launched,
                       {node, PathPart::kLaunchDelay, PathPart::kIdle});
      } else if (by_beside) {
        // The previous work let it begin before its own end (programmatic dependent launches).
        graph_.AddEdge(graph_.begin(beside), graph_.begin(node), Begin(node) - Begin(beside),
                       {beside, PathPartOf(trace_, beside), PathPart::kIdle});
      } else if (latest) {
        graph_.AddEdge(graph_.end(latest), graph_.begin(node), Begin(node) - End(latest),
                       {node, PathPart::kQueueWait, PathPart::kIdle});
      }
      // Whatever its predecessor, the stream's previous work had to be done.
      if (has_order && last && !beside && (last != latest || by_launch)) {
        graph_.AddEdge(graph_.end(last), graph_.begin(node), Nanos{},
                       {node, PathPart::kQueueWait, PathPart::kIdle});
      }
      for (const NodeId before : waits) {
        if (before == latest && !by_launch && !by_beside) continue;
        graph_.AddEdge(graph_.end(before), graph_.begin(node), Nanos{},
                       {node, part, PathPart::kIdle});
      }
      if (!last || End(node) >= End(last)) last = node;
    }
  }

  void AddHostWaits() {
    for (const NodeId node : graph_.nodes()) {
      const std::span<const NodeId> waits = before_[node.index()];
      if (waits.empty() || DeviceActivity(trace_, node) != Activity::kNone) continue;
      for (const NodeId before : waits) {
        graph_.AddEdge(graph_.end(before), graph_.begin(node), Nanos{},
                       {node, PathPart::kHost, PathPart::kIdle});
      }
    }
    for (const OrderEdge& wait : waits_) {
      if (!wait.in_call || !graph_.has(wait.node) || !graph_.has(wait.before)) continue;
      if (End(wait.before) > End(wait.node)) {
        AddWaitAcrossClocks(wait);
        continue;
      }
      // The last of several waits ended with the waiting.
      const Nanos waited_until = Begin(wait.node) + wait.waited;
      graph_.AddEdge(graph_.end(wait.before), graph_.end(wait.node),
                     End(wait.node) - std::max(End(wait.before), waited_until),
                     {wait.node, PathPart::kSyncReturn, PathPart::kHostWait});
    }
  }

  // Clocks of devices are off by some microseconds, so work may end after the call that waited for
  // it. The path then runs through the part of the work that had passed when the call returned.
  void AddWaitAcrossClocks(const OrderEdge& wait) {
    constexpr Nanos kClockError{50'000};
    const bool is_off = End(wait.before) - End(wait.node) <= kClockError &&
                        Begin(wait.before) < End(wait.node) &&
                        trace_.place(wait.before) == Place::kDevice;
    if (!is_off) {
      ++contradictions_;
      return;
    }
    graph_.AddEdge(graph_.begin(wait.before), graph_.end(wait.node),
                   End(wait.node) - Begin(wait.before),
                   {wait.before, PathPartOf(trace_, wait.before), PathPart::kHostWait});
  }

  const RecordedRun& run_;
  const Trace& trace_;
  std::span<const OrderEdge> waits_;
  const Launches& launches_;
  RunGraph graph_;
  std::vector<Interval> times_;      // by node, for those of the graph
  const HostTimes* host_ = nullptr;  // if no device works
  std::optional<Interval> span_;
  uint64_t untimed_ = 0;
  uint64_t contradictions_ = 0;
  Lanes threads_;
  Lanes streams_;
  std::vector<bool> began_;  // by node, while walking its thread
  std::vector<bool> ended_;
  std::vector<Nanos> waited_;  // by node; waiting time not yet assigned to a piece of the thread
  struct Wait {
    NodeId node;
    NodeId before;
  };
  std::vector<Wait> found_waits_;
  Csr<NodeId> before_;  // by node: its predecessors
};

}  // namespace

bool IsHostWork(const Trace& trace, NodeId node) {
  return HostActivity(trace, node) != Activity::kNone ||
         (trace.kind(node) == NodeKind::kRuntime && trace.place(node) == Place::kHost);
}

PathPart PathPartOf(const Trace& trace, NodeId node) {
  switch (DeviceActivity(trace, node)) {
    case Activity::kCompute: return PathPart::kCompute;
    case Activity::kCommunication: return PathPart::kCommunication;
    case Activity::kCopy: return PathPart::kCopy;
    case Activity::kNone: break;
  }
  return HostActivity(trace, node) == Activity::kCommunication ? PathPart::kCommunication
                                                               : PathPart::kHost;
}

TimedGraph MakeTimedGraph(const RecordedRun& run) { return RunMaker(run).Run(); }

}  // namespace etude
