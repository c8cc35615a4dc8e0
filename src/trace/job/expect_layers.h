#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/job/layered_operations.h"
#include "src/trace/trace.h"

// For tests only.
namespace etude::testing_layers {

// Returns the same operations and edges in random order.
inline OperationGraph Shuffled(const OperationGraph& graph, std::mt19937& random) {
  const size_t count = graph.types.size();
  std::vector<uint32_t> number(count);
  std::iota(number.begin(), number.end(), uint32_t{0});
  std::ranges::shuffle(number, random);
  OperationGraph shuffled;
  shuffled.types.resize(count);
  std::vector<std::pair<uint32_t, OperationEdge>> edges;
  for (uint32_t i = 0; i < count; ++i) {
    shuffled.types[number[i]] = graph.types[i];
    for (OperationEdge edge : graph.edges[i]) {
      if (edge.source != OperationEdge::kOutside) edge.source = number[edge.source];
      edges.emplace_back(number[i], edge);
    }
  }
  std::ranges::shuffle(edges, random);
  shuffled.edges = Csr<OperationEdge>::Build(
      count, edges, [](const auto& edge) { return edge.first; },
      [](const auto& edge) { return edge.second; });
  return shuffled;
}

// Checks the invariants of the layers of any acyclic graph.
inline void ExpectLayers(const OperationGraph& graph, const std::string& what) {
  const auto layered = LayerOperations(graph);
  ASSERT_TRUE(layered) << what;
  EXPECT_TRUE(InProgramOrder(*layered) == graph) << what << ": comes back";
  const LayeredForm& form = layered->form;
  ASSERT_EQ(form.begins.back(), graph.types.size()) << what;
  size_t wrong = 0;
  for (size_t layer = 0; layer < form.layer_count(); ++layer) {
    const uint32_t begin = form.begins[layer];
    wrong += begin < form.begins[layer + 1] ? 0 : 1;
    for (uint32_t at = begin; at < form.begins[layer + 1]; ++at) {
      uint32_t before = OperationEdge::kOutside;
      for (const OperationEdge& edge : form.edges[at]) {
        const bool outside = edge.source == OperationEdge::kOutside;
        wrong += !outside && edge.source >= begin ? 1 : 0;
        // The latest first, outside edges last.
        wrong += edge.source + 1 > before + 1 && before + 1 != 0 ? 1 : 0;
        if (!outside) before = edge.source;
      }
      const auto edges = form.edges[at];
      const bool first_is_inside =
          !edges.empty() && edges.front().source != OperationEdge::kOutside;
      wrong += first_is_inside == (layer == 0) ? 1 : 0;
      if (first_is_inside) wrong += edges.front().source < form.begins[layer - 1] ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0u) << what;
  std::mt19937 random(static_cast<unsigned>(graph.types.size()));
  const auto again = LayerOperations(Shuffled(graph, random));
  ASSERT_TRUE(again) << what;
  EXPECT_TRUE(again->form == form) << what << ": whatever the order of the program";
}

// Checks that the layers of a trace reproduce the callers and dependencies of its nodes.
inline void ExpectLayers(const Trace& trace, const std::string& what) {
  const OperationTypes types = FindTypes(trace);
  const OperationGraph graph = GraphOf(trace, types, Stretch(0, trace.node_count()));
  const auto layered = LayerOperations(graph);
  ASSERT_EQ(layered.has_value(), trace.is_acyclic()) << what;
  if (!layered) return;
  ExpectLayers(graph, what);
  const OperationGraph back = InProgramOrder(*layered);
  size_t wrong = 0;
  ForEachNode(trace, [&](NodeId node) {
    const OperationType& type = types.types[back.types[node.index()]];
    wrong += type.kind != trace.kind(node) || type.place != trace.place(node) ? 1 : 0;
    NodeId caller;
    std::vector<NodeId> deps;
    std::vector<DepKind> kinds;
    for (const OperationEdge& edge : back.edges[node.index()]) {
      if (edge.kind == EdgeKind::kCaller) {
        caller = NodeId(edge.source);
        continue;
      }
      deps.push_back(NodeId(edge.source));
      kinds.push_back(edge.kind == EdgeKind::kControl ? DepKind::kControl
                      : edge.kind == EdgeKind::kData  ? DepKind::kData
                                                      : DepKind::kSync);
    }
    const bool same = caller == trace.parent(node) && std::ranges::equal(deps, trace.deps(node)) &&
                      std::ranges::equal(kinds, trace.dep_kinds(node));
    wrong += same ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0u) << what;
}

}  // namespace etude::testing_layers
