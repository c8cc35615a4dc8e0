#include "src/analysis/time/critical_path.h"

#include <algorithm>
#include <utility>

#include "src/run/activity.h"
#include "src/run/longest_path.h"
#include "src/run/run_graph.h"

namespace etude {
namespace {

// Longest path of a recorded run.
class RunPath {
 public:
  explicit RunPath(const RecordedRun& run)
      : trace_(run.trace()), run_(run.graph()), graph_(run_.graph) {}

  CriticalPath Find() {
    result_.by_clock = true;
    result_.nodes = graph_.nodes().size();
    result_.span = run_.span;
    result_.untimed = run_.untimed;
    Measure();
    const LongestPath path = graph_.Solve();
    result_.contradictions = run_.contradictions + path.dropped;
    Describe(path);
    return std::move(result_);
  }

 private:
  // Measures each node's own time: on threads the sum of its pieces.
  void Measure() {
    std::vector<Nanos> own(trace_.node_count());
    for (size_t i = 0; i < graph_.edge_count(); ++i) {
      const RunStep& step = graph_.step(i);
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
      const RunStep& step = graph_.step(number);
      const Nanos from = run_.TimeOfPoint(trace_, edge.from);
      const Nanos to = run_.TimeOfPoint(trace_, edge.to);
      const Nanos split = to - edge.weight;
      if (from < split) Add(step.beside, step.node, Nanos{}, {from, split});
      if (edge.weight.count > 0) Add(step.part, step.node, edge.weight, {split, to});
    }
  }

  // Adds a stretch, merged with an equal previous one.
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
  const TimedGraph& run_;
  const RunGraph& graph_;
  CriticalPath result_;
};

// Returns the path by dependencies, weighed with durations.
CriticalPath ByDependencies(const RecordedRun& run) {
  const Trace& trace = run.trace();
  CriticalPath result;
  RunGraph graph(trace);
  const auto self = run.self_times();
  // Purely descriptive nodes pass on the order.
  ForEachNode(trace, [&](NodeId node) { graph.AddNode(node); });
  ForEachNode(trace, [&](NodeId node) {
    const bool works = DeviceActivity(trace, node) != Activity::kNone || IsHostWork(trace, node);
    const std::optional<Nanos> own = works ? self[node.index()] : std::nullopt;
    const Nanos weight = std::max(own.value_or(Nanos{}), Nanos{});
    if (works) ++(own ? result.nodes : result.untimed);
    result.work = result.work + weight;
    result.longest_node = std::max(result.longest_node, weight);
    graph.AddEdge(graph.begin(node), graph.end(node), weight,
                  {node, PathPartOf(trace, node), PathPart::kIdle});
    const auto after = [&](NodeId before) {
      graph.AddEdge(graph.end(before), graph.begin(node), Nanos{},
                    {node, PathPartOf(trace, node), PathPart::kIdle});
    };
    if (trace.parent(node)) after(trace.parent(node));
    for (const NodeId dep : trace.deps(node)) after(dep);
  });
  const LongestPath path = graph.Solve();
  result.length = path.length;
  result.contradictions = path.dropped;
  for (const uint32_t number : path.edges) {
    const Nanos weight = graph.edge(number).weight;
    const RunStep& step = graph.step(number);
    if (weight.count > 0) result.stretches.push_back({step.part, step.node, weight, std::nullopt});
  }
  return result;
}

}  // namespace

CriticalPath FindCriticalPath(const RecordedRun& run) {
  const Trace& trace = run.trace();
  bool timed = false;
  ForEachNode(trace, [&](NodeId node) {
    timed = timed || (TimeOf(trace, node) &&
                      (DeviceActivity(trace, node) != Activity::kNone || IsHostWork(trace, node)));
  });
  return timed ? RunPath(run).Find() : ByDependencies(run);
}

}  // namespace etude
