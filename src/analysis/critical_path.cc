#include "src/analysis/critical_path.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "src/analysis/activity.h"
#include "src/analysis/longest_path.h"
#include "src/trace/exclusive_times.h"

namespace etude {
namespace {

// Whether a thread of the host does something in the node.
bool IsHostWork(const Trace& trace, NodeId node) {
  return HostActivity(trace, node) != Activity::kNone ||
         (trace.kind(node) == NodeKind::kRuntime && trace.place(node) == Place::kHost);
}

PathPart PartOf(const Trace& trace, NodeId node) {
  switch (DeviceActivity(trace, node)) {
    case Activity::kCompute: return PathPart::kCompute;
    case Activity::kCommunication: return PathPart::kCommunication;
    case Activity::kCopy: return PathPart::kCopy;
    case Activity::kNone: break;
  }
  return HostActivity(trace, node) == Activity::kCommunication ? PathPart::kCommunication
                                                               : PathPart::kHost;
}

// An edge of the graph and what its weight, and the time that it spans beyond, stand for.
struct Step {
  NodeId node;
  PathPart part = PathPart::kHost;
  PathPart beside = PathPart::kIdle;
  bool is_own = false;  // the weight is what the node itself takes
};

// The graph: two points per node, where it begins and where it ends.
class Graph {
 public:
  explicit Graph(const Trace& trace) : numbers_(trace.node_count(), kAbsent) {}

  void AddNode(NodeId node) {
    numbers_[node.index()] = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back(node);
  }
  bool has(NodeId node) const { return node && numbers_[node.index()] != kAbsent; }
  uint32_t begin(NodeId node) const { return 2 * numbers_[node.index()]; }
  uint32_t end(NodeId node) const { return 2 * numbers_[node.index()] + 1; }
  NodeId node_at(uint32_t point) const { return nodes_[point / 2]; }
  const std::vector<NodeId>& nodes() const { return nodes_; }
  size_t points() const { return 2 * nodes_.size(); }

  size_t AddEdge(uint32_t from, uint32_t to, Nanos weight, const Step& step) {
    edges_.push_back({from, to, weight});
    steps_.push_back(step);
    return edges_.size() - 1;
  }
  PathEdge& edge(size_t number) { return edges_[number]; }
  const PathEdge& edge(size_t number) const { return edges_[number]; }
  const Step& step(size_t number) const { return steps_[number]; }
  size_t edge_count() const { return edges_.size(); }
  LongestPath Solve() const { return FindLongestPath(points(), edges_); }

 private:
  static constexpr uint32_t kAbsent = UINT32_MAX;

  std::vector<uint32_t> numbers_;  // by node
  std::vector<NodeId> nodes_;
  std::vector<PathEdge> edges_;
  std::vector<Step> steps_;
};

// What the run was, from starts and durations.
class RecordedRun {
 public:
  RecordedRun(const Trace& trace, std::span<const RecordedWait> waits)
      : trace_(trace), waits_(waits), launches_(trace), graph_(trace) {}

  CriticalPath Run() {
    ForEachNode(trace_, [&](NodeId node) { AddNode(node); });
    result_.by_clock = true;
    result_.nodes = graph_.nodes().size();
    FindWaitedTimes();
    SortLanes();
    began_.resize(trace_.node_count());
    ended_.resize(trace_.node_count());
    for (const auto& [lane, nodes] : threads_) AddThread(nodes);
    CollectWaits();
    for (const auto& [stream, nodes] : streams_) AddStream(stream, nodes);
    AddHostWaits();
    Measure();
    const LongestPath path = graph_.Solve();
    result_.contradictions += path.dropped;
    Describe(path);
    return std::move(result_);
  }

 private:
  using Lanes = std::map<LaneId, std::vector<NodeId>>;

  void AddNode(NodeId node) {
    const bool on_device = DeviceActivity(trace_, node) != Activity::kNone;
    if (!on_device && !IsHostWork(trace_, node)) return;
    const auto time = TimeOf(trace_, node);
    if (!time) {
      ++result_.untimed;
      return;
    }
    graph_.AddNode(node);
    if (!result_.span) result_.span = time;
    result_.span->begin = std::min(result_.span->begin, time->begin);
    result_.span->end = std::max(result_.span->end, time->end);
    const LaneId lane = trace_.lane_id(node);
    if (on_device) {
      streams_[lane].push_back(node);
    } else if (lane) {
      threads_[lane].push_back(node);
    } else {
      AddOwn(node);
    }
  }

  Nanos Begin(NodeId node) const { return *trace_.start(node); }
  Nanos End(NodeId node) const { return *trace_.start(node) + *trace_.duration(node); }
  Nanos At(uint32_t point) const {
    const NodeId node = graph_.node_at(point);
    return point % 2 == 0 ? Begin(node) : End(node);
  }

  void SortLanes() {
    for (Lanes* lanes : {&threads_, &streams_}) {
      for (auto& [lane, nodes] : *lanes) {
        std::ranges::sort(nodes, {}, [&](NodeId node) {
          return std::tuple(Begin(node), -End(node).count, node);
        });
      }
    }
  }

  // Time in which a node did nothing but wait for others. A linked trace has it in durations
  // without children, which are less by it.
  void FindWaitedTimes() {
    waited_.resize(trace_.node_count());
    for (const RecordedWait& wait : waits_) {
      if (wait.in_call && graph_.has(wait.node)) waited_[wait.node.index()] = wait.waited;
    }
    if (trace_.info().format != TraceFormat::kLinked) return;
    std::vector<NodeTime> times(trace_.node_count());
    ForEachNode(trace_, [&](NodeId node) {
      times[node.index()] = {.start = trace_.start(node),
                             .duration = trace_.duration(node),
                             .lane = trace_.lane_id(node)};
    });
    const ExclusiveTimes self = FindExclusiveTimes(trace_, times);
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
                   {node, PartOf(trace_, node), PathPart::kIdle, /*is_own=*/true});
  }

  // Joins the points of a thread, which are where its nodes begin and end, in order of time. What
  // lies between two points is the innermost open node's; without one nothing was recorded.
  void AddThread(const std::vector<NodeId>& nodes) {
    std::vector<NodeId> by_end = nodes;
    std::ranges::stable_sort(by_end, {}, [&](NodeId node) { return End(node); });
    // Of nodes that end together those that began last end first.
    for (auto first = by_end.begin(); first != by_end.end();) {
      const auto last =
          std::find_if(first, by_end.end(), [&](NodeId node) { return End(node) != End(*first); });
      std::reverse(first, last);
      first = last;
    }
    std::vector<size_t> added;
    std::vector<NodeId> open;
    uint32_t last = 0;
    bool any = false;
    const auto visit = [&](uint32_t point) {
      while (!open.empty() && ended_[open.back().index()]) open.pop_back();
      if (any) {
        const NodeId inside = open.empty() ? NodeId::None() : open.back();
        const NodeId node = inside ? inside : graph_.node_at(point);
        const Nanos passed = inside ? At(point) - At(last) : Nanos{};
        added.push_back(graph_.AddEdge(
            last, point, passed,
            {node, PartOf(trace_, node), inside ? PathPart::kHostWait : PathPart::kIdle,
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
    // A linked trace does not say where in a node it waited: programs do so at the end.
    for (size_t i = added.size(); i-- > 0;) {
      Nanos& left = waited_[graph_.step(added[i]).node.index()];
      Nanos& weight = graph_.edge(added[i]).weight;
      const Nanos waited = std::min(left, weight);
      left = left - waited;
      weight = weight - waited;
    }
  }

  // Dependencies of the trace and what synchronisation adds, by the node that waits.
  void CollectWaits() {
    ForEachNode(trace_, [&](NodeId node) {
      for (size_t i = 0; i < trace_.deps(node).size(); ++i) {
        const NodeId dep = trace_.deps(node)[i];
        const bool waits = trace_.dep_kinds(node)[i] == DepKind::kSync;
        const NodeId waiter = waits && !graph_.has(node) ? NextOnThread(node) : node;
        if (!graph_.has(dep) || !graph_.has(waiter)) continue;
        // A caller comes before what it calls, but its end does not.
        if (End(dep) > Begin(waiter) && trace_.place(dep) == Place::kHost) continue;
        AddWait(waiter, dep);
      }
    });
    for (const RecordedWait& wait : waits_) {
      if (!wait.in_call && graph_.has(wait.node) && graph_.has(wait.before)) {
        AddWait(wait.node, wait.before);
      }
    }
  }

  // The first node that does something on the thread of a label, from its beginning on.
  NodeId NextOnThread(NodeId label) const {
    const auto start = trace_.start(label);
    const auto thread = threads_.find(trace_.lane_id(label));
    if (!start || thread == threads_.end()) return NodeId::None();
    const auto next = std::ranges::lower_bound(thread->second, *start, {},
                                               [&](NodeId node) { return Begin(node); });
    return next == thread->second.end() ? NodeId::None() : *next;
  }

  void AddWait(NodeId node, NodeId before) {
    if (End(before) > Begin(node)) {
      ++result_.contradictions;
      return;
    }
    before_[node].push_back(before);
  }

  // Work begins after the latest of what it waits for, which explains the time until then.
  void AddStream(LaneId lane, const std::vector<NodeId>& nodes) {
    const bool has_order = lane && trace_.lane(lane).stream >= 0;
    NodeId last;  // to end, of those before
    for (const NodeId node : nodes) {
      AddOwn(node);
      const PathPart part = PartOf(trace_, node);
      NodeId latest = has_order ? last : NodeId::None();
      if (latest && End(latest) > Begin(node)) latest = NodeId::None();  // at the same time
      const auto waits = before_.find(node);
      if (waits != before_.end()) {
        for (const NodeId before : waits->second) {
          if (!latest || End(before) > End(latest)) latest = before;
        }
      }
      const auto launched = launches_.time(node);
      const NodeId launcher = launches_.launcher(node);
      const bool by_launch = launched && graph_.has(launcher) && *launched <= Begin(node) &&
                             (!latest || *launched > End(latest));
      if (by_launch) {
        graph_.AddEdge(graph_.begin(launcher), graph_.begin(node), Begin(node) - *launched,
                       {node, PathPart::kLaunchDelay, PathPart::kIdle});
      } else if (latest) {
        graph_.AddEdge(graph_.end(latest), graph_.begin(node), Begin(node) - End(latest),
                       {node, PathPart::kQueueWait, PathPart::kIdle});
      }
      if (waits != before_.end()) {
        for (const NodeId before : waits->second) {
          if (before == latest && !by_launch) continue;
          graph_.AddEdge(graph_.end(before), graph_.begin(node), Nanos{},
                         {node, part, PathPart::kIdle});
        }
      }
      if (!last || End(node) >= End(last)) last = node;
    }
  }

  void AddHostWaits() {
    for (const NodeId node : graph_.nodes()) {
      const auto waits = before_.find(node);
      if (DeviceActivity(trace_, node) != Activity::kNone || waits == before_.end()) continue;
      for (const NodeId before : waits->second) {
        graph_.AddEdge(graph_.end(before), graph_.begin(node), Nanos{},
                       {node, PathPart::kHost, PathPart::kIdle});
      }
    }
    for (const RecordedWait& wait : waits_) {
      if (!wait.in_call || !graph_.has(wait.node) || !graph_.has(wait.before)) continue;
      if (End(wait.before) > End(wait.node)) {
        ++result_.contradictions;
        continue;
      }
      // Of several the last one ended when the waiting did.
      const Nanos waited_until = Begin(wait.node) + wait.waited;
      graph_.AddEdge(graph_.end(wait.before), graph_.end(wait.node),
                     End(wait.node) - std::max(End(wait.before), waited_until),
                     {wait.node, PathPart::kSyncReturn, PathPart::kHostWait});
    }
  }

  // What each node takes by itself: on threads the sum of its pieces.
  void Measure() {
    std::vector<Nanos> own(trace_.node_count());
    for (size_t i = 0; i < graph_.edge_count(); ++i) {
      const Step& step = graph_.step(i);
      if (!step.is_own) continue;
      own[step.node.index()] = own[step.node.index()] + graph_.edge(i).weight;
      result_.work = result_.work + graph_.edge(i).weight;
    }
    for (const Nanos time : own) result_.longest_node = std::max(result_.longest_node, time);
  }

  void Describe(const LongestPath& path) {
    result_.length = path.length;
    for (const uint32_t number : path.edges) {
      const PathEdge& edge = graph_.edge(number);
      const Step& step = graph_.step(number);
      const Nanos from = At(edge.from);
      const Nanos to = At(edge.to);
      const Nanos split = to - edge.weight;
      if (from < split) Add(step.beside, step.node, Nanos{}, {from, split});
      if (edge.weight.count > 0) Add(step.part, step.node, edge.weight, {split, to});
    }
  }

  // Joins what goes on with the same.
  void Add(PathPart part, NodeId node, Nanos length, const Interval& time) {
    auto& all = result_.stretches;
    if (!all.empty() && all.back().part == part && all.back().node == node) {
      all.back().length = all.back().length + length;
      all.back().time->end = time.end;
      return;
    }
    all.push_back({part, node, length, time});
  }

  const Trace& trace_;
  std::span<const RecordedWait> waits_;
  Launches launches_;
  Graph graph_;
  CriticalPath result_;
  Lanes threads_;
  Lanes streams_;
  std::vector<bool> began_;  // by node, while its thread is walked through
  std::vector<bool> ended_;
  std::vector<Nanos> waited_;  // by node; what no piece of the thread has taken yet
  std::unordered_map<NodeId, std::vector<NodeId>> before_;
};

// What comes after what by the dependencies, weighed with durations.
CriticalPath ByDependencies(const Trace& trace) {
  CriticalPath result;
  Graph graph(trace);
  const std::vector<std::optional<Nanos>> self = SelfTimes(trace);
  // Nodes that only describe hand on the order.
  ForEachNode(trace, [&](NodeId node) { graph.AddNode(node); });
  ForEachNode(trace, [&](NodeId node) {
    const bool works = DeviceActivity(trace, node) != Activity::kNone || IsHostWork(trace, node);
    const std::optional<Nanos> own = works ? self[node.index()] : std::nullopt;
    const Nanos weight = std::max(own.value_or(Nanos{}), Nanos{});
    if (works) ++(own ? result.nodes : result.untimed);
    result.work = result.work + weight;
    result.longest_node = std::max(result.longest_node, weight);
    graph.AddEdge(graph.begin(node), graph.end(node), weight,
                  {node, PartOf(trace, node), PathPart::kIdle});
    const auto after = [&](NodeId before) {
      graph.AddEdge(graph.end(before), graph.begin(node), Nanos{},
                    {node, PartOf(trace, node), PathPart::kIdle});
    };
    if (trace.parent(node)) after(trace.parent(node));
    for (const NodeId dep : trace.deps(node)) after(dep);
  });
  const LongestPath path = graph.Solve();
  result.length = path.length;
  result.contradictions = path.dropped;
  for (const uint32_t number : path.edges) {
    const Nanos weight = graph.edge(number).weight;
    const Step& step = graph.step(number);
    if (weight.count > 0) result.stretches.push_back({step.part, step.node, weight, std::nullopt});
  }
  return result;
}

}  // namespace

std::string_view Name(PathPart part) {
  switch (part) {
    case PathPart::kHost: return "host";
    case PathPart::kCompute: return "compute";
    case PathPart::kCommunication: return "communication";
    case PathPart::kCopy: return "copy";
    case PathPart::kLaunchDelay: return "launch delay";
    case PathPart::kQueueWait: return "queue wait";
    case PathPart::kSyncReturn: return "sync return";
    case PathPart::kHostWait: return "host wait";
    case PathPart::kIdle: return "idle";
    case PathPart::kOutside: return "outside";
  }
  return "outside";
}

bool IsOnPath(PathPart part) { return part < PathPart::kHostWait; }

CriticalPath FindCriticalPath(const Trace& trace, std::span<const RecordedWait> waits) {
  bool timed = false;
  ForEachNode(trace, [&](NodeId node) {
    timed = timed || (TimeOf(trace, node) &&
                      (DeviceActivity(trace, node) != Activity::kNone || IsHostWork(trace, node)));
  });
  return timed ? RecordedRun(trace, waits).Run() : ByDependencies(trace);
}

}  // namespace etude
