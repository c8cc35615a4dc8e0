#include "src/run/waits/acyclic.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <random>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

NodeId N(uint32_t i) { return NodeId(i); }

// `parents[i]` is the parent of node i, -1: none. Ids ascend.
Trace Tree(const std::vector<int>& parents, const std::vector<OrderEdge>& edges = {}) {
  TraceBuilder builder;
  for (size_t i = 0; i < parents.size(); ++i) {
    NodeRow row;
    row.source_id = i;
    if (parents[i] >= 0) row.parent = static_cast<uint64_t>(parents[i]);
    builder.AddNode(row);
  }
  for (const OrderEdge& edge : edges) builder.AddDep(edge.node, edge.before, KindOf(edge.reason));
  return builder.Finish().value();
}

TEST(FindBackwardEdges, LeavesAcyclicGraphsAlone) {
  // 0 waits for 2, against program order but without a cycle.
  const std::vector<OrderEdge> edges = {{N(0), N(2)}, {N(2), N(1)}};
  EXPECT_EQ(FindBackwardEdges(Tree({-1, -1, -1}), edges), (std::vector<bool>{false, false}));
}

TEST(FindBackwardEdges, TakesTheEdgeAgainstTheProgramsOrder) {
  const std::vector<OrderEdge> edges = {{N(1), N(0)}, {N(2), N(1)}, {N(0), N(2)}, {N(3), N(3)}};
  EXPECT_EQ(FindBackwardEdges(Tree({-1, -1, -1, -1}), edges),
            (std::vector<bool>{false, false, true, true}));
}

TEST(FindBackwardEdges, CountsParentsAsEdges) {
  const std::vector<OrderEdge> edges = {{N(0), N(1)}};
  EXPECT_EQ(FindBackwardEdges(Tree({-1, 0}), edges), (std::vector<bool>{true}));
}

TEST(FindContradictions, GivesWayToTheGivenEdges) {
  // A thread of four nodes in order; node 1 also waits for node 2.
  const std::vector<OrderEdge> edges = {{N(1), N(2)}, {N(1), N(0)}, {N(2), N(1)}, {N(3), N(2)}};
  EXPECT_EQ(FindContradictions(Tree({-1, -1, -1, -1}), edges, 1),
            (std::vector<bool>{false, false, true, false}));
}

std::vector<OrderEdge> RandomEdges(uint32_t seed, uint32_t nodes, size_t count) {
  std::mt19937 random(seed);
  std::vector<OrderEdge> edges(count);
  for (OrderEdge& edge : edges) {
    edge.node = N(static_cast<uint32_t>(random()) % nodes);
    edge.before = N(static_cast<uint32_t>(random()) % nodes);
  }
  return edges;
}

std::vector<OrderEdge> Without(const std::vector<OrderEdge>& edges,
                               const std::vector<bool>& flags) {
  std::vector<OrderEdge> kept;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!flags[i]) kept.push_back(edges[i]);
  }
  return kept;
}

RC_GTEST_PROP(Acyclic, HoldsAfterwards, (uint32_t seed)) {
  const uint32_t nodes = 1 + seed % 30;
  std::mt19937 random(seed);
  std::vector<int> parents;
  for (uint32_t i = 0; i < nodes; ++i) {
    parents.push_back(i == 0 ? -1 : static_cast<int>(random() % (i + 1)) - 1);
  }
  const Trace tree = Tree(parents);
  std::vector<OrderEdge> edges = RandomEdges(seed, nodes, nodes);
  const bool was_acyclic = Tree(parents, edges).is_acyclic();
  const std::vector<bool> backward = FindBackwardEdges(tree, edges);
  RC_ASSERT(was_acyclic == (std::ranges::count(backward, true) == 0));
  edges = Without(edges, backward);
  RC_ASSERT(Tree(parents, edges).is_acyclic());
  const size_t given = edges.size();
  for (const OrderEdge& edge : RandomEdges(seed + 1, nodes, nodes)) edges.push_back(edge);
  const std::vector<bool> contradicting = FindContradictions(tree, edges, given);
  for (size_t i = 0; i < given; ++i) RC_ASSERT(!contradicting[i]);
  RC_ASSERT(Tree(parents, Without(edges, contradicting)).is_acyclic());
}

}  // namespace
}  // namespace etude
