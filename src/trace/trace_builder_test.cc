#include "src/trace/trace_builder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

namespace etude {
namespace {

NodeRow Row(TraceBuilder& builder, uint64_t id, std::optional<uint64_t> parent = std::nullopt) {
  NodeRow row;
  row.source_id = id;
  row.parent = parent;
  row.name = builder.Intern("n" + std::to_string(id));
  return row;
}

TEST(TraceBuilder, ResolvesParentsThatComeLater) {
  TraceBuilder builder;
  const NodeId child = builder.AddNode(Row(builder, 7, 3));
  const NodeId parent = builder.AddNode(Row(builder, 3));
  const Trace trace = *builder.Finish();
  EXPECT_EQ(trace.parent(child), parent);
  ASSERT_EQ(trace.children(parent).size(), 1u);
  EXPECT_EQ(trace.children(parent)[0], child);
  EXPECT_EQ(trace.Find(7), child);
  EXPECT_EQ(trace.Find(3), parent);
  EXPECT_TRUE(trace.Find(4).is_none());
}

TEST(TraceBuilder, CountsAndKeepsDanglingReferences) {
  TraceBuilder builder;
  const NodeId node = builder.AddNode(Row(builder, 1, 99));
  builder.AddDep(node, uint64_t{98}, DepKind::kData);
  const Trace trace = *builder.Finish();
  EXPECT_EQ(trace.stats()[Stat::kDanglingParent], 1u);
  EXPECT_EQ(trace.stats()[Stat::kDanglingDependency], 1u);
  ASSERT_EQ(trace.dangling().size(), 2u);
  EXPECT_EQ(trace.dangling()[0].source_id, 99u);
  EXPECT_EQ(trace.dangling()[1].source_id, 98u);
  EXPECT_TRUE(trace.deps(node).empty());
}

TEST(TraceBuilder, DuplicateIdsMeanTheFirst) {
  TraceBuilder builder;
  const NodeId first = builder.AddNode(Row(builder, 5));
  builder.AddNode(Row(builder, 5));
  const NodeId child = builder.AddNode(Row(builder, 6, 5));
  const Trace trace = *builder.Finish();
  EXPECT_EQ(trace.stats()[Stat::kDuplicateId], 1u);
  EXPECT_EQ(trace.parent(child), first);
}

TEST(TraceBuilder, BreaksParentCyclesAndSaysSo) {
  TraceBuilder builder;
  builder.AddNode(Row(builder, 1, 2));
  builder.AddNode(Row(builder, 2, 1));
  const Trace trace = *builder.Finish();
  EXPECT_EQ(trace.stats()[Stat::kParentCycle], 1u);
  EXPECT_TRUE(trace.is_acyclic());
}

TEST(TraceBuilder, ReportsACycleOfDependencies) {
  TraceBuilder builder;
  const NodeId a = builder.AddNode(Row(builder, 1));
  const NodeId b = builder.AddNode(Row(builder, 2));
  const NodeId c = builder.AddNode(Row(builder, 3));
  const NodeId behind = builder.AddNode(Row(builder, 4));
  builder.AddDep(a, c, DepKind::kData);
  builder.AddDep(b, a, DepKind::kData);
  builder.AddDep(c, b, DepKind::kSync);
  builder.AddDep(behind, c, DepKind::kData);
  const Trace trace = *builder.Finish();
  EXPECT_EQ(trace.stats()[Stat::kDependencyCycle], 4u);
  ASSERT_EQ(trace.cycle().size(), 3u);
  // Each node waits for the next.
  for (size_t i = 0; i < 3; ++i) {
    const NodeId next = trace.cycle()[(i + 1) % 3];
    EXPECT_TRUE(std::ranges::count(trace.deps(trace.cycle()[i]), next));
  }
}

TEST(TraceBuilder, UnknownStaysUnknown) {
  TraceBuilder builder;
  NodeRow row = Row(builder, 1);
  row.start = Nanos{0};
  row.duration = Nanos{-5};
  const NodeId node = builder.AddNode(row);
  const Trace trace = *builder.Finish();
  EXPECT_EQ(trace.start(node), Nanos{0});
  EXPECT_EQ(trace.duration(node), std::nullopt);
  EXPECT_EQ(trace.rf_id(node), std::nullopt);
  EXPECT_EQ(trace.stats()[Stat::kNegativeDuration], 1u);
}

TEST(TraceBuilder, SizesOfGroupsBelowOneAreUnknown) {
  TraceBuilder builder;
  NodeRow row = Row(builder, 1);
  row.kind = NodeKind::kCollective;
  const NodeId node = builder.AddNode(row);
  builder.SetComm(node, {.group_size = 0});
  builder.AddProcessGroup({.name = builder.Intern("0"), .size = -1});
  builder.AddProcessGroup({.name = builder.Intern("1"), .size = 1});
  builder.AddProcessGroup({.name = builder.Intern("0"), .size = 4});
  const Trace trace = *builder.Finish();
  EXPECT_EQ(trace.comm(node)->group_size, std::nullopt);
  EXPECT_EQ(trace.process_groups()[0].size, 4) << "of the mention that says it";
  EXPECT_EQ(trace.process_groups()[1].size, 1);
  EXPECT_EQ(trace.stats()[Stat::kNonFiniteNumber], 2u);
}

TEST(TraceBuilder, NodeLimitIsAnError) {
  Limits limits;
  limits.nodes = 1;
  TraceBuilder builder(limits);
  builder.AddNode(Row(builder, 1));
  builder.AddNode(Row(builder, 2));
  const Result<Trace> trace = builder.Finish();
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().code, ErrorCode::kBadInput);
}

TEST(TraceBuilder, LastCommFactWins) {
  TraceBuilder builder;
  const NodeId node = builder.AddNode(Row(builder, 1));
  builder.SetComm(node, {.type = CollectiveType::kBroadcast});
  builder.SetComm(node, {.type = CollectiveType::kAllReduce});
  const Trace trace = *builder.Finish();
  ASSERT_NE(trace.comm(node), nullptr);
  EXPECT_EQ(trace.comm(node)->type, CollectiveType::kAllReduce);
  EXPECT_EQ(trace.comms().size(), 1u);
}

TEST(TraceBuilder, AGroupOfAllRanksStaysOne) {
  TraceBuilder builder;
  builder.AddProcessGroup({.name = builder.Intern("0"), .ranks = builder.InternInts({})});
  builder.AddProcessGroup({.name = builder.Intern("0"), .size = 2});
  const Trace trace = builder.Finish().value();
  ASSERT_EQ(trace.process_groups().size(), 1u);
  EXPECT_FALSE(trace.process_groups()[0].ranks.is_none());
  EXPECT_EQ(trace.process_groups()[0].size, 2);
}

TEST(TraceBuilder, GroupsAreFoundByName) {
  TraceBuilder builder;
  builder.AddProcessGroup({.name = builder.Intern("1"), .size = 2});
  builder.AddProcessGroup({.name = builder.Intern("2"), .size = 4});
  builder.AddProcessGroup({.name = builder.Intern("1"), .description = builder.Intern("dp")});
  const StringId unknown = builder.Intern("3");
  EXPECT_EQ(builder.FindGroup(builder.Intern("2")), &builder.process_groups()[1]);
  const Trace trace = builder.Finish().value();
  ASSERT_EQ(trace.process_groups().size(), 2u);
  for (const ProcessGroup& group : trace.process_groups()) {
    EXPECT_EQ(trace.FindGroup(group.name), &group);
  }
  EXPECT_EQ(trace.text(trace.process_groups()[0].description), "dp");
  EXPECT_EQ(trace.FindGroup(unknown), nullptr);
  EXPECT_EQ(trace.FindGroup(StringId::None()), nullptr);
}

TEST(TraceBuilder, CommunicationsHaveFactsIfOnlyEmptyOnes) {
  TraceBuilder builder;
  const NodeId send = builder.AddNode(Row(builder, 1));
  const NodeId op = builder.AddNode(Row(builder, 2));
  builder.SetKind(send, NodeKind::kSend);
  const Trace trace = *builder.Finish();
  ASSERT_NE(trace.comm(send), nullptr);
  EXPECT_EQ(*trace.comm(send), Comm{});
  EXPECT_EQ(trace.comm(op), nullptr);
}

TEST(TraceBuilder, TheListOfRanksSaysTheSizeOfAGroup) {
  struct Case {
    std::optional<std::vector<int64_t>> ranks;
    std::optional<int64_t> stated;
    std::optional<int64_t> world;
    std::optional<int64_t> size;
    bool is_all = false;
  };
  const std::vector<int64_t> two = {1, 3};
  const std::vector<int64_t> none;
  const std::vector<Case> cases = {
      {.ranks = two, .stated = 8, .world = 8, .size = 2},
      {.ranks = two, .world = 2, .size = 2, .is_all = true},
      {.ranks = none, .stated = 2, .world = 8, .size = 8, .is_all = true},
      {.ranks = none, .stated = 2, .size = 2, .is_all = true},
      {.ranks = none, .is_all = true},
      {.stated = 2, .world = 8, .size = 2},
      {.stated = 8, .world = 8, .size = 8, .is_all = true},
      {.stated = 8, .size = 8},
      {.world = 8},
      {},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    TraceBuilder builder;
    builder.info().world_size = one.world;
    ProcessGroup group{.name = builder.Intern("0"), .size = one.stated};
    if (one.ranks) group.ranks = builder.InternInts(*one.ranks);
    builder.AddProcessGroup(group);
    EXPECT_EQ(builder.GroupSize(group), one.size) << i;
    EXPECT_EQ(builder.HasAllRanks(group), one.is_all) << i;
    const Trace trace = *builder.Finish();
    EXPECT_EQ(trace.GroupSize(trace.process_groups()[0]), one.size) << i;
    EXPECT_EQ(trace.HasAllRanks(trace.process_groups()[0]), one.is_all) << i;
  }
}

// Any rows in any order: each reference resolves or is counted, and both directions agree.
TEST(TraceBuilder, EveryReferenceIsAccountedFor) {
  rc::check([] {
    TraceBuilder builder;
    const auto ids = *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, 40));
    uint64_t references = 0, dependencies = 0;
    for (const uint64_t id : ids) {
      const auto parent = *rc::gen::maybe(rc::gen::inRange<uint64_t>(0, 50));
      const NodeId node =
          builder.AddNode(Row(builder, id, parent ? std::optional(*parent) : std::nullopt));
      if (parent) ++references;
      for (const uint64_t dep :
           *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, 50))) {
        builder.AddDep(node, dep, DepKind::kData);
        ++dependencies;
      }
    }
    const Trace trace = *builder.Finish();
    uint64_t parents = 0, forward = 0, children = 0;
    ForEachNode(trace, [&](NodeId node) {
      if (trace.parent(node)) ++parents;
      forward += trace.deps(node).size();
      children += trace.children(node).size();
      RC_ASSERT(trace.source_id(trace.Find(trace.source_id(node))) == trace.source_id(node));
    });
    RC_ASSERT(children == parents);
    RC_ASSERT(parents + forward + trace.dangling().size() == references + dependencies);
    RC_ASSERT(trace.is_acyclic() == (trace.stats()[Stat::kDependencyCycle] == 0));
  });
}

}  // namespace
}  // namespace etude
