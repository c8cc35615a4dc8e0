#include "src/run/waits/acyclic.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <utility>

#include "src/base/container/csr.h"
#include "src/run/waits/program_order.h"

namespace etude {
namespace {

// Numbers the nodes depth first, siblings and roots by id.
std::vector<uint32_t> ProgramRanks(const Trace& trace) {
  std::vector<uint32_t> ranks(trace.node_count());
  std::vector<NodeId> stack;
  const auto later_first = [&](NodeId a, NodeId b) { return ComesLater(trace, a, b); };
  ForEachNode(trace, [&](NodeId node) {
    if (!trace.parent(node)) stack.push_back(node);
  });
  std::ranges::sort(stack, later_first);
  uint32_t next = 0;
  while (!stack.empty()) {
    const NodeId node = stack.back();
    stack.pop_back();
    ranks[node.index()] = next++;
    const auto first = static_cast<std::ptrdiff_t>(stack.size());
    for (const NodeId child : trace.children(node)) stack.push_back(child);
    std::sort(stack.begin() + first, stack.end(), later_first);
  }
  return ranks;
}

// Tarjan's strongly connected components over parents and edges, without recursion.
class Components {
 public:
  Components(const Trace& trace, const Csr<NodeId>& deps) : trace_(trace), deps_(deps) {
    const size_t nodes = trace.node_count();
    found_.assign(nodes, 0);
    low_.assign(nodes, 0);
    component_.assign(nodes, 0);
    for (size_t i = 0; i < nodes; ++i) {
      if (found_[i] == 0) Visit(NodeId::FromIndex(i));
    }
  }

  bool Together(NodeId a, NodeId b) const { return component_[a.index()] == component_[b.index()]; }

 private:
  struct Frame {
    NodeId node;
    size_t next = 0;  // 0: the parent, then the dependencies
  };

  NodeId Successor(NodeId node, size_t number) const {
    if (number == 0) return trace_.parent(node);
    return deps_[node.index()][number - 1];
  }

  void Open(NodeId node) {
    found_[node.index()] = low_[node.index()] = ++time_;
    path_.push_back(node);
    frames_.push_back({node});
  }

  void Visit(NodeId root) {
    Open(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const NodeId node = frame.node;
      if (frame.next <= deps_[node.index()].size()) {
        const NodeId next = Successor(node, frame.next++);
        if (!next) continue;
        if (found_[next.index()] == 0) {
          Open(next);
        } else if (component_[next.index()] == 0) {
          low_[node.index()] = std::min(low_[node.index()], found_[next.index()]);
        }
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) {
        uint32_t& above = low_[frames_.back().node.index()];
        above = std::min(above, low_[node.index()]);
      }
      if (low_[node.index()] == found_[node.index()]) Close(node);
    }
  }

  void Close(NodeId node) {
    ++components_;
    NodeId last;
    do {
      last = path_.back();
      path_.pop_back();
      component_[last.index()] = components_;
    } while (last != node);
  }

  const Trace& trace_;
  const Csr<NodeId>& deps_;
  uint32_t time_ = 0;
  uint32_t components_ = 0;
  std::vector<uint32_t> found_;  // 0: not visited
  std::vector<uint32_t> low_;
  std::vector<uint32_t> component_;  // 0: still open
  std::vector<NodeId> path_;
  std::vector<Frame> frames_;
};

// Returns the numbers of the edges whose ends wait for each other, directly or not.
std::vector<size_t> EdgesOnCycles(const Trace& trace, const std::vector<OrderEdge>& edges) {
  const auto deps = Csr<NodeId>::Build(
      trace.node_count(), edges, [](const OrderEdge& edge) { return edge.node.index(); },
      [](const OrderEdge& edge) { return edge.before; });
  const Components components(trace, deps);
  std::vector<size_t> found;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (components.Together(edges[i].node, edges[i].before)) found.push_back(i);
  }
  return found;
}

// Numbers the nodes so that none precedes a node it waits for, as close to `wanted` as possible.
std::vector<uint32_t> RanksKeeping(const Trace& trace, std::span<const OrderEdge> edges,
                                   const std::vector<uint32_t>& wanted) {
  const size_t nodes = trace.node_count();
  const auto dependents = Csr<NodeId>::Build(
      nodes, edges, [](const OrderEdge& edge) { return edge.before.index(); },
      [](const OrderEdge& edge) { return edge.node; });
  std::vector<uint32_t> waits(nodes);
  for (const OrderEdge& edge : edges) ++waits[edge.node.index()];
  using Entry = std::pair<uint32_t, NodeId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.parent(node)) ++waits[node.index()];
    if (waits[node.index()] == 0) ready.emplace(wanted[node.index()], node);
  });
  std::vector<uint32_t> ranks(nodes);
  uint32_t next = 0;
  while (!ready.empty()) {
    const NodeId node = ready.top().second;
    ready.pop();
    ranks[node.index()] = next++;
    const auto release = [&](NodeId other) {
      if (--waits[other.index()] == 0) ready.emplace(wanted[other.index()], other);
    };
    for (const NodeId child : trace.children(node)) release(child);
    for (const NodeId dependent : dependents[node.index()]) release(dependent);
  }
  return ranks;
}

}  // namespace

std::vector<bool> FindBackwardEdges(const Trace& trace, const std::vector<OrderEdge>& edges) {
  std::vector<bool> backward(edges.size());
  const std::vector<size_t> suspects = EdgesOnCycles(trace, edges);
  if (suspects.empty()) return backward;
  const std::vector<uint32_t> ranks = ProgramRanks(trace);
  for (const size_t i : suspects) {
    backward[i] = ranks[edges[i].before.index()] >= ranks[edges[i].node.index()];
  }
  return backward;
}

std::vector<bool> FindContradictions(const Trace& trace, const std::vector<OrderEdge>& edges,
                                     size_t given) {
  std::vector<bool> contradicting(edges.size());
  const std::vector<size_t> suspects = EdgesOnCycles(trace, edges);
  if (suspects.empty()) return contradicting;
  const std::vector<uint32_t> ranks =
      RanksKeeping(trace, std::span(edges).first(given), ProgramRanks(trace));
  for (const size_t i : suspects) {
    contradicting[i] = i >= given && ranks[edges[i].before.index()] >= ranks[edges[i].node.index()];
  }
  return contradicting;
}

}  // namespace etude
