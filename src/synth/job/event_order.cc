#include "src/synth/job/event_order.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "src/base/container/csr.h"

namespace etude {
namespace {

// Graph for ordering communications. Vertices: events (for messages, their sending), the receipts
// of messages, and the other nodes of all classes.
struct WaitGraph {
  std::vector<std::pair<uint32_t, uint32_t>> edges;  // from, to
  uint32_t vertices = 0;
  std::vector<size_t> positions;  // by event: position in the first program with it
};

WaitGraph MakeWaitGraph(std::span<const ClassCalls> classes, size_t events) {
  WaitGraph graph;
  graph.positions.assign(events, SIZE_MAX);
  graph.vertices = static_cast<uint32_t>(2 * events);
  for (size_t i = 0; i < events; ++i) {
    graph.edges.emplace_back(static_cast<uint32_t>(i), static_cast<uint32_t>(events + i));
  }
  for (const ClassCalls& one : classes) {
    const Trace& program = *one.program;
    const std::vector<CommCall>& calls = *one.calls;
    // Without times the order of issue is unknown.
    const bool timed = std::ranges::all_of(
        calls, [&](const CommCall& call) { return program.start(call.row).has_value(); });
    std::vector<uint32_t> vertex(program.node_count(), UINT32_MAX);
    std::map<StringId, uint32_t> last;  // collective, by group
    for (size_t i = 0; i < calls.size(); ++i) {
      const size_t event = one.event_of[i];
      const bool receives = calls[i].kind == NodeKind::kRecv;
      const auto is = static_cast<uint32_t>(receives ? events + event : event);
      vertex[calls[i].facts.index()] = is;
      graph.positions[event] = std::min(graph.positions[event], i);
      if (!timed || calls[i].kind != NodeKind::kCollective) continue;
      const auto [before, first] = last.emplace(program.comm(calls[i].facts)->group, is);
      if (!first) graph.edges.emplace_back(std::exchange(before->second, is), is);
    }
    for (uint32_t& of : vertex) {
      if (of == UINT32_MAX) of = graph.vertices++;
    }
    ForEachNode(program, [&](NodeId node) {
      const auto wait_for = [&](NodeId other) {
        graph.edges.emplace_back(vertex[other.index()], vertex[node.index()]);
      };
      if (program.parent(node)) wait_for(program.parent(node));
      for (const NodeId dep : program.deps(node)) wait_for(dep);
    });
  }
  return graph;
}

// Returns communications that wait for each other, as class and call, among the remaining vertices.
std::vector<ClassCall> FindCycle(std::span<const ClassCalls> classes, size_t events,
                                 const std::vector<std::pair<uint32_t, uint32_t>>& edges,
                                 const std::vector<uint32_t>& waits) {
  const auto before = Csr<uint32_t>::Build(
      waits.size(), edges, [](const auto& edge) { return edge.second; },
      [](const auto& edge) { return edge.first; });
  auto at = static_cast<uint32_t>(
      std::ranges::find_if(waits, [](uint32_t left) { return left != 0; }) - waits.begin());
  std::vector<uint32_t> walk;
  std::vector<size_t> step(waits.size(), SIZE_MAX);
  while (step[at] == SIZE_MAX) {
    step[at] = walk.size();
    walk.push_back(at);
    at = *std::ranges::find_if(before[at], [&](uint32_t from) { return waits[from] != 0; });
  }
  std::vector<ClassCall> cycle;
  for (size_t i = step[at]; i < walk.size(); ++i) {
    if (walk[i] >= 2 * events) continue;
    const bool receives = walk[i] >= events;
    for (size_t c = 0; c < classes.size(); ++c) {
      const std::vector<CommCall>& calls = *classes[c].calls;
      for (size_t k = 0; k < calls.size(); ++k) {
        if (classes[c].event_of[k] == walk[i] % events &&
            (calls[k].kind == NodeKind::kRecv) == receives) {
          cycle.push_back({.rank_class = c, .call = k});
          c = classes.size() - 1;
          break;
        }
      }
    }
  }
  return cycle;
}

}  // namespace

std::vector<ClassCall> OrderEvents(std::span<const ClassCalls> classes,
                                   std::vector<CommEvent>& events) {
  const size_t count = events.size();
  const WaitGraph graph = MakeWaitGraph(classes, count);
  const auto next = Csr<uint32_t>::Build(
      graph.vertices, graph.edges, [](const auto& edge) { return edge.first; },
      [](const auto& edge) { return edge.second; });
  std::vector<uint32_t> waits(graph.vertices);
  for (const auto& [from, to] : graph.edges) ++waits[to];
  // The possible event that is first in a program.
  using Ready = std::pair<size_t, uint32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  std::vector<uint32_t> free;
  const auto release = [&](uint32_t at) {
    if (at < count) {
      ready.emplace(graph.positions[at], at);
    } else {
      free.push_back(at);
    }
  };
  for (uint32_t i = 0; i < graph.vertices; ++i) {
    if (waits[i] == 0) release(i);
  }
  std::vector<size_t> order;
  while (!free.empty() || !ready.empty()) {
    uint32_t at = 0;
    if (!free.empty()) {
      at = free.back();
      free.pop_back();
      if (at < 2 * count) events[at - count].received_after = order.size() - 1;
    } else {
      at = ready.top().second;
      ready.pop();
      order.push_back(at);
    }
    for (const uint32_t to : next[at]) {
      if (--waits[to] == 0) release(to);
    }
  }
  if (std::ranges::any_of(waits, [](uint32_t left) { return left != 0; })) {
    return FindCycle(classes, count, graph.edges, waits);
  }
  std::vector<CommEvent> sorted;
  for (const size_t at : order) {
    CommEvent& event = sorted.emplace_back(std::move(events[at]));
    if (!event.is_message || event.received_after == sorted.size() - 1) event.received_after = 0;
  }
  events = std::move(sorted);
  return {};
}

}  // namespace etude
