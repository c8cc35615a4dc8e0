#include "src/analysis/comm_log.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

class CommNodesTest : public testing::Test {
 protected:
  NodeId Add(NodeKind kind, std::optional<uint64_t> parent, Place place = Place::kHost) {
    return builder_.AddNode(
        {.source_id = ++last_, .kind = kind, .place = place, .name = name_, .parent = parent});
  }

  TraceBuilder builder_;
  StringId name_ = builder_.Intern("n");
  uint64_t last_ = 0;
};

TEST_F(CommNodesTest, ACallStandsForThoseInsideIt) {
  const NodeId outer = Add(NodeKind::kCollective, {});   // 1
  Add(NodeKind::kOperator, 1);                           // 2
  Add(NodeKind::kSend, 2);                               // 3, inside
  const NodeId beside = Add(NodeKind::kCollective, {});  // 4
  EXPECT_EQ(CommNodes(builder_.Finish().value()), (std::vector<NodeId>{outer, beside}));
}

TEST_F(CommNodesTest, WhatDevicesDidStandsForTheHostsCalls) {
  Add(NodeKind::kCollective, {});
  const NodeId kernel = Add(NodeKind::kCollective, 1, Place::kDevice);
  EXPECT_EQ(CommNodes(builder_.Finish().value()), std::vector<NodeId>{kernel});
}

// Gloo's threads begin with what was issued in any order.
TEST(CommLog, WorkOfABackendsThreadsStandsWhereItWasIssued) {
  TraceBuilder builder;
  const auto add = [&](uint64_t id, std::string_view name, NodeKind kind, int64_t start) {
    return builder.AddNode({.source_id = id,
                            .kind = kind,
                            .place = Place::kHost,
                            .name = builder.Intern(name),
                            .start = Nanos{start},
                            .duration = Nanos{10}});
  };
  add(1, "c10d::_allgather_base_", NodeKind::kOperator, 100);
  add(2, "c10d::_reduce_scatter_base_", NodeKind::kOperator, 200);
  const NodeId reduce = add(3, "gloo:all_reduce", NodeKind::kCollective, 300);
  const NodeId gather = add(4, "gloo:all_gather", NodeKind::kCollective, 310);
  const NodeId last = add(5, "gloo:all_gather", NodeKind::kCollective, 320);
  builder.AddDep(reduce, 2, DepKind::kControl);
  builder.AddDep(gather, 1, DepKind::kControl);
  std::vector<NodeId> order;
  std::vector<uint64_t> names;
  for (const CommCall& call : ReadCommLog(builder.Finish().value(), 0).calls) {
    order.push_back(call.row);
    names.push_back(call.node);
  }
  EXPECT_EQ(order, (std::vector<NodeId>{gather, reduce, last}));
  EXPECT_EQ(names, (std::vector<uint64_t>{1, 2, 5})) << "the operators, where they are known";
}

TEST(CommLog, WhichGroupsAllRanksAreIn) {
  TraceBuilder builder;
  builder.info().world_size = 2;
  const std::vector<std::string> names = {"all", "listed", "small", "unknown"};
  builder.AddProcessGroup({.name = builder.Intern("all"), .size = 2});
  builder.AddProcessGroup(
      {.name = builder.Intern("listed"), .ranks = builder.InternInts(std::vector<int64_t>{0, 1})});
  builder.AddProcessGroup({.name = builder.Intern("small"), .size = 1});
  for (const std::string& name : names) {
    Comm comm;
    comm.group = builder.Intern(name);
    builder.SetComm(builder.AddNode({.source_id = builder.node_count(),
                                     .kind = NodeKind::kCollective,
                                     .place = Place::kHost,
                                     .name = builder.Intern("n")}),
                    comm);
  }
  const CommLog log = ReadCommLog(builder.Finish().value(), 0);
  ASSERT_EQ(log.groups.size(), 4u);
  EXPECT_TRUE(log.groups[0].is_all);
  EXPECT_FALSE(log.groups[1].is_all) << "its ranks say so";
  EXPECT_FALSE(log.groups[2].is_all);
  EXPECT_FALSE(log.groups[3].is_all);
}

// A trace that names no group has one of all ranks, unless it knows a smaller one.
TEST(CommLog, TheOnlyGroupIsOfAllRanks) {
  for (const bool has_small : {false, true}) {
    TraceBuilder builder;
    builder.info().world_size = 2;
    if (has_small) builder.AddProcessGroup({.name = builder.Intern("1"), .size = 1});
    builder.SetComm(builder.AddNode({.source_id = 1,
                                     .kind = NodeKind::kCollective,
                                     .place = Place::kHost,
                                     .name = builder.Intern("n")}),
                    Comm());
    const CommLog log = ReadCommLog(builder.Finish().value(), 0);
    EXPECT_EQ(log.groups.at(0).is_all, !has_small);
  }
}

// As deep as there are calls: the way up is gone once.
TEST_F(CommNodesTest, DeepNesting) {
  constexpr uint64_t kDepth = 200'000;
  Add(NodeKind::kOperator, {});
  while (last_ < kDepth) Add(NodeKind::kOperator, last_);
  for (uint64_t i = 0; i < kDepth; ++i) Add(NodeKind::kSend, kDepth);
  EXPECT_EQ(CommNodes(builder_.Finish().value()).size(), kDepth);
}

}  // namespace
}  // namespace etude
