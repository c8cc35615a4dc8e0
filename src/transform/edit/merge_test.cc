#include "src/transform/edit/merge.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/trace/trace_builder.h"
#include "src/trace/validator.h"

namespace etude {
namespace {

// An operator at `start` and a collective below it that waits for it, in group "1" of `members`.
Trace Rank(int64_t start, std::vector<int64_t> members) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  builder.info().schema = "1.1.1";
  builder.info().rank = 7;
  builder.info().world_size = 4;
  builder.info().extras.push_back({.key = builder.Intern("tool"), .text = builder.Intern("\"x\"")});
  builder.info().extras.push_back(
      {.key = builder.Intern("begin"), .text = builder.Intern(std::to_string(start))});
  builder.AddProcessGroup(
      {.name = builder.Intern("1"), .ranks = builder.InternInts(members), .size = 2});
  NodeRow row{.source_id = 10, .kind = NodeKind::kOperator, .place = Place::kHost};
  row.name = builder.Intern("op");
  row.lane = builder.InternLane({.process = builder.Intern("55"), .thread = builder.Intern("9")});
  row.start = Nanos{start};
  row.duration = Nanos{100};
  row.tid = 2;
  row.fw_tid = 0;
  row.correlation = 0;
  builder.AddNode(row);
  row = {.source_id = 12, .kind = NodeKind::kCollective, .place = Place::kDevice, .parent = 10};
  row.name = builder.Intern("nccl");
  row.lane = builder.InternLane({.device = 0, .stream = 7});
  row.start = Nanos{start + 10};
  row.duration = Nanos{50};
  row.correlation = 3;
  row.fw_parent = 10;
  const NodeId node = builder.AddNode(row);
  builder.SetComm(node, {.type = CollectiveType::kAllReduce, .group = builder.Intern("1")});
  builder.AddDep(node, 10, DepKind::kSync);
  builder.AddDep(node, 99, DepKind::kSync);
  return builder.Finish().value();
}

TEST(Merge, KeepsRanksApart) {
  const Trace first = Rank(1000, {0, 1});
  const Trace second = Rank(6000, {2, 3});
  const std::vector<MergeInput> inputs = {
      {.trace = &first, .label = "rank 0"},
      {.trace = &second, .label = "rank 2", .offset = Nanos{5000}}};
  const auto merged = Merge(inputs, {});
  ASSERT_TRUE(merged.has_value()) << merged.error().message;
  const Trace& trace = merged->trace;
  EXPECT_TRUE(IsValid(Validate(trace)));
  ASSERT_EQ(trace.node_count(), 4u);
  EXPECT_EQ(merged->dangling, 2u);
  const NodeId op = NodeId::FromIndex(2);
  const NodeId nccl = NodeId::FromIndex(3);
  EXPECT_EQ(trace.source_id(nccl), 3u);
  EXPECT_EQ(trace.parent(nccl), op);
  ASSERT_EQ(trace.deps(nccl).size(), 1u);
  EXPECT_EQ(trace.deps(nccl)[0], op);
  EXPECT_EQ(trace.start(op), Nanos{1000}) << "on the first one's clock";
  EXPECT_EQ(trace.fw_parent(nccl), 2u);
  EXPECT_EQ(trace.text(trace.lane(trace.lane_id(op)).process), "rank 2/55");
  EXPECT_EQ(trace.text(trace.lane(trace.lane_id(op)).thread), "9");
  EXPECT_EQ(trace.text(trace.lane(trace.lane_id(nccl)).process), "rank 2");
  EXPECT_EQ(trace.lane(trace.lane_id(nccl)).stream, 7);
  EXPECT_NE(trace.correlation(nccl), trace.correlation(NodeId::FromIndex(1)));
  EXPECT_NE(trace.tid(op), trace.tid(NodeId::FromIndex(0)));
  EXPECT_EQ(trace.fw_tid(op), 0u) << "runs forward";
  EXPECT_EQ(trace.correlation(op), 0) << "links nothing";

  EXPECT_EQ(merged->renamed_groups, 1u) << "another group of the same name";
  ASSERT_EQ(trace.process_groups().size(), 2u);
  EXPECT_EQ(trace.text(trace.comm(NodeId::FromIndex(1))->group), "1");
  EXPECT_EQ(trace.text(trace.comm(nccl)->group), "1 of rank 2");

  EXPECT_EQ(trace.info().rank, std::nullopt);
  EXPECT_EQ(trace.info().world_size, 4);
  std::vector<std::string> facts;
  for (const Extra& extra : trace.info().extras) {
    facts.push_back(std::string(trace.text(extra.key)) + "=" + std::string(trace.text(extra.text)));
  }
  EXPECT_EQ(facts,
            (std::vector<std::string>{"tool=\"x\"", "rank 0/begin=1000", "rank 2/begin=6000"}));
}

TEST(Merge, RanksOfARenamedGroupStayTogether) {
  const Trace first = Rank(0, {0, 1});
  const Trace second = Rank(0, {2, 3});
  const Trace third = Rank(0, {2, 3});
  const std::vector<MergeInput> inputs = {{.trace = &first, .label = "rank 0"},
                                          {.trace = &second, .label = "rank 2"},
                                          {.trace = &third, .label = "rank 3"}};
  const auto merged = Merge(inputs, {});
  ASSERT_TRUE(merged.has_value());
  EXPECT_EQ(merged->trace.process_groups().size(), 2u);
  EXPECT_EQ(merged->renamed_groups, 1u);
  EXPECT_EQ(merged->trace.text(merged->trace.comm(NodeId::FromIndex(5))->group), "1 of rank 2");
}

TEST(Merge, GroupsOfTheSameMembersAreOne) {
  const Trace first = Rank(0, {0, 1});
  const Trace second = Rank(0, {0, 1});
  const std::vector<MergeInput> inputs = {{.trace = &first, .label = "rank 0"},
                                          {.trace = &second, .label = "rank 1"}};
  const auto merged = Merge(inputs, {});
  ASSERT_TRUE(merged.has_value());
  EXPECT_EQ(merged->trace.process_groups().size(), 1u);
  EXPECT_EQ(merged->renamed_groups, 0u);
}

TEST(Merge, RefusesWhatDoesNotFit) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kKineto);
  builder.AddNode({.source_id = 1});
  const Trace profile = builder.Finish().value();
  TraceBuilder exclusive;
  exclusive.info().SetFormat(TraceFormat::kChakra);
  exclusive.info().traits.exclusive_durations = true;
  exclusive.AddNode({.source_id = 1});
  const Trace chakra = exclusive.Finish().value();
  const Trace linked = Rank(0, {});
  for (const Trace* other : {&profile, &chakra}) {
    const std::vector<MergeInput> inputs = {{.trace = &linked, .label = "a"},
                                            {.trace = other, .label = "b"}};
    const auto merged = Merge(inputs, {});
    ASSERT_FALSE(merged.has_value());
    EXPECT_EQ(merged.error().code, ErrorCode::kBadInput);
  }
}

}  // namespace
}  // namespace etude
