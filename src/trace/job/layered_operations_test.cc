#include "src/trace/job/layered_operations.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/job/expect_layers.h"
#include "src/trace/job/motifs.h"
#include "src/trace/job/packed_trace.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using testing_layers::ExpectLayers;
using testing_layers::Shuffled;

constexpr uint32_t kOutside = OperationEdge::kOutside;

struct Edge {
  uint32_t operation = 0;
  uint32_t source = 0;
  EdgeKind kind = EdgeKind::kData;
};

OperationGraph Graph(std::vector<uint32_t> types, const std::vector<Edge>& edges) {
  OperationGraph graph{.types = std::move(types)};
  graph.edges = Csr<OperationEdge>::Build(
      graph.types.size(), edges, [](const Edge& edge) { return edge.operation; },
      [](const Edge& edge) { return OperationEdge{.source = edge.source, .kind = edge.kind}; });
  return graph;
}

std::vector<std::vector<uint32_t>> SourcesOf(const LayeredForm& form) {
  std::vector<std::vector<uint32_t>> sources(form.types.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    for (const OperationEdge& edge : form.edges[i]) sources[i].push_back(edge.source);
  }
  return sources;
}

using Numbers = std::vector<uint32_t>;

// 0 precedes 1 (type 2) and 2 (type 1); both precede 3. 0 also precedes 3, and an outside operation
// precedes 1.
TEST(LayeredOperations, OfADiamond) {
  const OperationGraph graph = Graph(
      {0, 2, 1, 0},
      {{1, kOutside, EdgeKind::kSync}, {1, 0}, {2, 0}, {3, 0, EdgeKind::kCaller}, {3, 2}, {3, 1}});
  const LayeredOperations layered = LayerOperations(graph).value();
  EXPECT_EQ(layered.form.begins, (Numbers{0, 1, 3, 4}));
  EXPECT_EQ(layered.form.shape(), (LayerShape{.layers = 3, .width = 2}));
  // 2 is before 1: their edges are the same, but 1 has one more.
  EXPECT_EQ(layered.order, (Numbers{0, 2, 1, 3}));
  EXPECT_EQ(layered.form.types, (Numbers{0, 1, 2, 0}));
  EXPECT_EQ(SourcesOf(layered.form), (std::vector<Numbers>{{}, {0}, {0, kOutside}, {2, 1, 0}}));
  EXPECT_EQ(layered.edge_order, (Numbers{0, 1, 0, 2, 1, 0}));
  EXPECT_EQ(layered.form.edges[3][2].kind, EdgeKind::kCaller);
  ExpectLayers(graph, "diamond");
}

// 0 and 1 are alike; 2 and 3 depend on one of them each and have types 6 and 5. The predecessors
// decide, then types.
TEST(LayeredOperations, AreOrderedByWhatComesBeforeThenByType) {
  const LayeredForm form = LayerOperations(Graph({4, 4, 6, 5, 3}, {{2, 0}, {3, 1}, {4, 0}}))->form;
  EXPECT_EQ(form.begins, (Numbers{0, 2, 5}));
  EXPECT_EQ(form.types[0], 4u);
  // One precedes 3 (type 5), the other precedes 2 and 4 (types 6 and 3).
  const bool lone_first = form.types[2] == 5;
  EXPECT_EQ(SourcesOf(form), lone_first ? (std::vector<Numbers>{{}, {}, {0}, {1}, {1}})
                                        : (std::vector<Numbers>{{}, {}, {0}, {0}, {1}}));
  EXPECT_EQ(form.types, lone_first ? (Numbers{4, 4, 5, 3, 6}) : (Numbers{4, 4, 3, 6, 5}));
}

// Two pairs of a and b, each before an x: the order of the a's determines that of the b's.
TEST(LayeredOperations, HaveOneFormWhereChoicesDependOnEachOther) {
  const LayeredForm one =
      LayerOperations(Graph({0, 0, 1, 1, 2, 2}, {{4, 0}, {4, 2}, {5, 1}, {5, 3}}))->form;
  const LayeredForm other =
      LayerOperations(Graph({0, 0, 1, 1, 2, 2}, {{4, 0}, {4, 3}, {5, 1}, {5, 2}}))->form;
  EXPECT_TRUE(one == other);
}

TEST(LayeredOperations, TellKindsOfEdgesApart) {
  const auto form = [](EdgeKind first, EdgeKind second) {
    return LayerOperations(Graph({0, 1, 1}, {{1, 0, first}, {2, 0, second}}))->form;
  };
  EXPECT_TRUE(form(EdgeKind::kData, EdgeKind::kSync) == form(EdgeKind::kSync, EdgeKind::kData));
  EXPECT_FALSE(form(EdgeKind::kData, EdgeKind::kSync) == form(EdgeKind::kData, EdgeKind::kData));
}

TEST(LayeredOperations, CyclesHaveNone) {
  EXPECT_FALSE(LayerOperations(Graph({0}, {{0, 0}})));
  EXPECT_FALSE(LayerOperations(Graph({0, 0, 0}, {{1, 0}, {1, 2}, {2, 1}})));
  EXPECT_FALSE(FindShape(Graph({0, 0}, {{0, 1}, {1, 0}})));
}

TEST(LayeredOperations, OfNothing) {
  const LayeredOperations none = LayerOperations(Graph({}, {})).value();
  EXPECT_EQ(none.form.layer_count(), 0u);
  EXPECT_EQ(none.form.shape(), LayerShape());
  EXPECT_TRUE(InProgramOrder(none) == Graph({}, {}));
}

// Random graphs with few types and duplicate edges, so that many operations are alike.
TEST(LayeredOperations, OfRandomGraphs) {
  std::mt19937 random(11);
  const auto below = [&](size_t end) { return static_cast<uint32_t>(random() % end); };
  for (int round = 0; round < 500; ++round) {
    const uint32_t count = below(40);
    const uint32_t types = 1 + below(3);
    const uint32_t edges_each = 1 + below(3);
    const uint32_t reach = 1 + below(20);
    const bool one_kind = below(2) == 0;
    OperationGraph graph;
    std::vector<uint32_t> of(count);
    std::vector<Edge> edges;
    for (uint32_t i = 0; i < count; ++i) {
      of[i] = below(types);
      for (uint32_t k = below(edges_each + 1); k > 0; --k) {
        const EdgeKind kind = one_kind ? EdgeKind::kData : static_cast<EdgeKind>(below(4));
        const uint32_t back = 1 + below(reach);
        edges.push_back({i, back > i ? kOutside : i - back, kind});
      }
    }
    ExpectLayers(Shuffled(Graph(of, edges), random), "round " + std::to_string(round));
  }
}

// The max number of equal operations below one: each must be visited only a few times.
TEST(LayeredOperations, OfManyThatAreAlike) {
  constexpr uint32_t kCount = 20'000;
  std::vector<Edge> edges;
  for (uint32_t i = 1; i < kCount; ++i) edges.push_back({i, 0, EdgeKind::kCaller});
  const OperationGraph graph = Graph(std::vector<uint32_t>(kCount, 7), edges);
  ExpectLayers(graph, "calls of one");
}

// Types are sorted and consist of names without numbers, kinds and collectives.
TEST(OperationTypes, AreTheSameInEveryOrder) {
  const auto types = [](std::initializer_list<const char*> names) {
    TraceBuilder builder;
    for (const char* name : names) {
      builder.AddNode({.source_id = builder.node_count(),
                       .kind = NodeKind::kCompute,
                       .name = builder.Intern(name)});
    }
    const NodeId last = builder.AddNode({.source_id = 99, .kind = NodeKind::kCollective});
    builder.SetComm(last, {.type = CollectiveType::kAllGather});
    return FindTypes(builder.Finish().value());
  };
  const OperationTypes some = types({"layer 7", "add", "layer 8"});
  ASSERT_EQ(some.types.size(), 3u);
  EXPECT_EQ(some.types[0].collective, CollectiveType::kAllGather);
  EXPECT_EQ(some.types[1].name, "add");
  EXPECT_EQ(some.types[2].name, "layer #");
  EXPECT_EQ(some.of, (Numbers{2, 1, 2, 0}));
  const OperationTypes others = types({"add", "layer 10"});
  EXPECT_EQ(others.types, some.types);
  EXPECT_EQ(others.of, (Numbers{1, 2, 0}));
}

// Callers and dependencies of each kind count; nodes before a stretch are outside of it.
TEST(OperationGraph, IsOfAStretch) {
  TraceBuilder builder;
  for (uint64_t i = 0; i < 4; ++i) builder.AddNode({.source_id = 10 + i});
  builder.SetParent(NodeId(1), 10);
  builder.SetParent(NodeId(2), 11);
  builder.AddDep(NodeId(3), NodeId(2), DepKind::kSync);
  builder.AddDep(NodeId(3), NodeId(0), DepKind::kControl);
  builder.AddDep(NodeId(3), NodeId(1), DepKind::kData);
  const Trace trace = builder.Finish().value();
  const OperationTypes types = FindTypes(trace);
  EXPECT_EQ(FindShape(GraphOf(trace, types, Stretch(0, 4))), (LayerShape{.layers = 4, .width = 1}));
  const OperationGraph graph = GraphOf(trace, types, Stretch(1, 3));
  EXPECT_TRUE(graph == Graph({0, 0, 0}, {{0, kOutside, EdgeKind::kCaller},
                                         {1, 0, EdgeKind::kCaller},
                                         {2, 1, EdgeKind::kSync},
                                         {2, kOutside, EdgeKind::kControl},
                                         {2, 0, EdgeKind::kData}}));
  const std::vector<NodeId> some = {NodeId(0), NodeId(3)};
  EXPECT_EQ(FindShape(GraphOf(trace, types, some)), (LayerShape{.layers = 2, .width = 1}));
  ExpectLayers(trace, "four nodes");
}

}  // namespace
}  // namespace etude
