#include "src/analysis/view/motif_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

// Makes nodes of these kinds, each after the previous one: c a computation, r an all-reduce, l a
// load.
Trace Sequence(const std::string& kinds) {
  TraceBuilder builder;
  for (const char kind : kinds) {
    NodeRow row;
    row.source_id = builder.node_count();
    row.kind = kind == 'c'   ? NodeKind::kCompute
               : kind == 'r' ? NodeKind::kCollective
                             : NodeKind::kMemLoad;
    const NodeId node = builder.AddNode(row);
    if (node.index() > 0) builder.AddDep(node, NodeId(node.value() - 1), DepKind::kData);
  }
  return builder.Finish().value();
}

using Row = std::tuple<size_t, uint64_t, uint64_t, uint32_t, uint32_t>;
std::vector<Row> RowsOf(const std::string& kinds, const MotifTreeOptions& options = {}) {
  std::vector<Row> rows;
  const MotifTree tree = MakeMotifTree(Sequence(kinds), options).value();
  for (const MotifRow& row : tree.rows) {
    rows.emplace_back(row.depth, row.times, row.nodes, row.first.value(), row.last.value());
  }
  return rows;
}

TEST(MotifTree, CountsWhatRepeats) {
  // The load has no predecessor. Then five times a computation and an all-reduce.
  EXPECT_EQ(RowsOf("lcrcrcrcrcr"), (std::vector<Row>{{0, 5, 2, 1, 2}}));
}

TEST(MotifTree, ShowsPartsBelowWhatIsMadeOfThem) {
  // Three times: four pairs of computation and all-reduce, then a load.
  const std::string step = "crcrcrcrl";
  const std::vector<Row> rows = RowsOf("l" + step + step + step);
  ASSERT_FALSE(rows.empty());
  uint64_t most = 0;
  for (const auto& [depth, times, nodes, first, last] : rows) {
    EXPECT_EQ(last - first + 1, nodes);
    if (depth == 0) most = std::max(most, times * nodes);
  }
  EXPECT_GE(most, 18u) << "most of 28 nodes are in what repeats";
  for (const auto& row : RowsOf("l" + step + step + step, {.depth = 1})) {
    EXPECT_EQ(std::get<0>(row), 0u);
  }
  EXPECT_EQ(RowsOf("l" + step + step + step, {.depth = 1, .rows = 1}).size(), 1u);
}

// Twice three loads and a computation: after the first loads, then after the last one only.
TEST(MotifTree, HasLayersOfEachMotif) {
  TraceBuilder builder;
  for (int i = 0; i < 8; ++i) {
    const bool computes = i % 4 == 3;
    const NodeId node = builder.AddNode({.source_id = builder.node_count(),
                                         .kind = computes ? NodeKind::kCompute : NodeKind::kMemLoad,
                                         .name = builder.Intern(computes ? "c" : "l")});
    if (!computes) continue;
    const uint32_t last = node.value() - 1;
    builder.AddDep(node, NodeId(i == 3 ? last - 1 : last), DepKind::kData);
    builder.AddDep(node, NodeId(last), DepKind::kData);
  }
  const MotifTree tree = MakeMotifTree(builder.Finish().value()).value();
  EXPECT_EQ(tree.shape, (LayerShape{.layers = 2, .width = 6}));
  ASSERT_FALSE(tree.rows.empty());
  const MotifRow& row = tree.rows.front();
  EXPECT_EQ(row.times, 2u);
  EXPECT_EQ(row.nodes, 4u);
  ASSERT_TRUE(row.layered);
  EXPECT_EQ(row.layered->form.shape(), (LayerShape{.layers = 2, .width = 3}));
  EXPECT_EQ(row.layered->order.back(), 3u);
  EXPECT_FALSE(row.same_everywhere);
  EXPECT_LT(tree.same_everywhere, tree.motifs);
}

TEST(MotifTree, SaysNothingOfWhatDoesNotRepeat) {
  EXPECT_TRUE(RowsOf("").empty());
  EXPECT_TRUE(RowsOf("lcr").empty());
}

}  // namespace
}  // namespace etude
