#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/run/planted_trace.h"
#include "src/trace/trace_builder.h"
#include "src/transform/runnable/element_type.h"
#include "src/transform/runnable/fused_operators.h"
#include "src/transform/runnable/launch_cost.h"

namespace etude {
namespace {

struct OperatorCall {
  std::string name;
  int64_t micros = 0;
  std::vector<uint64_t> inputs;  // storages
  uint64_t output = 0;
  int64_t elements = 4096;
};

// Makes a host trace of operators on float32 tensors, one after another.
Trace TraceOfCalls(const std::vector<OperatorCall>& calls) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  const LaneId lane = builder.InternLane({.thread = builder.Intern("main")});
  const StringId type = builder.Intern("Tensor(float)");
  Nanos start;
  for (size_t i = 0; i < calls.size(); ++i) {
    const OperatorCall& call = calls[i];
    const auto tensors = [&](const std::vector<uint64_t>& storages) {
      std::vector<Value> values;
      for (const uint64_t storage : storages) {
        values.push_back(Value::Tensor(
            type, builder.InternTensor({.tensor = storage,
                                        .storage = storage,
                                        .numel = call.elements,
                                        .element_bytes = 4,
                                        .type = type,
                                        .shape = builder.InternInts(std::vector{call.elements})})));
      }
      return builder.InternValues(values);
    };
    NodeRow row{.source_id = i + 1, .kind = NodeKind::kOperator, .place = Place::kHost};
    row.name = builder.Intern(call.name);
    row.lane = lane;
    row.start = start;
    row.duration = row.exclusive = Nanos{call.micros * 1000};
    row.inputs = tensors(call.inputs);
    row.outputs = tensors({call.output});
    builder.AddNode(row);
    start = start + *row.duration + Nanos{1000};
  }
  return builder.Finish().value();
}

std::vector<std::pair<std::string, int64_t>> TimedNodesOf(const RunnableRank& rank) {
  std::vector<std::pair<std::string, int64_t>> work;
  for (const RunnableNode& node : rank.nodes) {
    work.emplace_back(rank.names[node.name], node.duration.value_or(Nanos{-1000}).count / 1000);
  }
  return work;
}

using TimedNodes = std::vector<std::pair<std::string, int64_t>>;

TEST(FusedOperators, TakeTheTimeOfTheMostExpensive) {
  const Trace trace = TraceOfCalls({{"aten::add", 5, {1, 2}, 3},
                                    {"aten::relu", 7, {3}, 4},
                                    {"aten::mm", 20, {4, 5}, 6},
                                    {"aten::add", 6, {6, 2}, 7},
                                    {"aten::relu", 4, {7}, 8}});
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  EXPECT_EQ(FuseOperators(trace, std::vector<std::string>{"aten::add", "aten::relu"}, rank), 2u);
  EXPECT_EQ(
      TimedNodesOf(rank),
      (TimedNodes{{"aten::add+aten::relu", 7}, {"aten::mm", 20}, {"aten::add+aten::relu", 6}}));
  EXPECT_EQ(rank.deps, (std::vector<uint32_t>{0, 1}));
}

TEST(FusedOperators, FollowTheData) {
  // The second reads another tensor than the result of the first.
  const Trace trace = TraceOfCalls({{"aten::add", 5, {1, 2}, 3}, {"aten::relu", 7, {1}, 4}});
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  const auto fused =
      FuseOperators(trace, std::vector<std::string>{"aten::add", "aten::relu"}, rank);
  ASSERT_FALSE(fused);
  EXPECT_EQ(fused.error().message,
            "found no aten::add, aten::relu in this order, each with the result of the one before; "
            "no element-wise operator reads the result of 'aten::add' next");
}

TEST(FusedOperators, NameTheNearestChain) {
  const Trace trace = TraceOfCalls({{"aten::add", 5, {1, 2}, 3}, {"aten::gelu", 7, {3}, 4}});
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  const auto fused =
      FuseOperators(trace, std::vector<std::string>{"aten::add", "aten::relu"}, rank);
  ASSERT_FALSE(fused);
  EXPECT_NE(fused.error().message.find("nearest possible: --fuse aten::add,aten::gelu"),
            std::string::npos);
  EXPECT_FALSE(FuseOperators(trace, std::vector<std::string>{"aten::mm", "aten::add"}, rank));
}

TEST(ElementType, HalvesTheTimeOfMovedBytes) {
  // The small operator's 2 us are fixed: 2 + (10 - 2) / 2.
  const Trace trace = TraceOfCalls(
      {{"aten::add", 2, {1, 2}, 3, 8}, {"aten::add", 10, {4, 5}, 6}, {"aten::mm", 20, {6, 7}, 8}});
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  const TypeChange change = ChangeElementType(trace, DType::kBFloat16, rank).value();
  EXPECT_EQ(TimedNodesOf(rank), (TimedNodes{{"aten::add", 2}, {"aten::add", 6}, {"aten::mm", 20}}));
  EXPECT_EQ(change.retimed, 1u);
  EXPECT_EQ(change.products, 1u);
  EXPECT_FALSE(ChangeElementType(trace, DType::kFloat32, rank)) << "as recorded";
}

// Three kernels of 10 us, launched at once.
Trace ThreeLaunches() {
  testing_support::PlantedTrace planted;
  for (int i = 0; i < 3; ++i) {
    planted.Operator("aten::relu", 1, 4 * i, 4 * i + 3)
        .Launch(1, 4 * i + 1, 4 * i + 2, i + 1)
        .Kernel("relu", 7, 20 + 10 * i, 30 + 10 * i, i + 1);
  }
  return planted.Read();
}

TEST(LaunchCost, PrecedesTheWork) {
  const Trace trace = ThreeLaunches();
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  ASSERT_EQ(rank.nodes.size(), 3u);
  EXPECT_EQ(AddLaunches(trace, Nanos{15'000}, rank), 3u);
  // Launches follow each other, and each kernel its launch and the kernel before: the step takes
  // 15, 30, 45 us and a kernel.
  std::vector<int64_t> ends;
  std::vector<int64_t> launches;
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    int64_t begin = 0;
    for (const uint32_t dep : rank.DepsOf(i)) begin = std::max(begin, ends[dep]);
    ends.push_back(begin + rank.nodes[i].duration->count / 1000);
    if (rank.nodes[i].on_host) launches.push_back(ends.back());
  }
  EXPECT_EQ(launches, (std::vector<int64_t>{15, 30, 45}));
  EXPECT_EQ(*std::ranges::max_element(ends), 55);
}

TEST(LaunchCost, LaunchesFollowTheWaitsOfTheHost) {
  // The host launches a kernel of 10 us, waits for it, and launches the next one.
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  const LaneId host = builder.InternLane({.thread = builder.Intern("main")});
  const LaneId stream = builder.InternLane({.device = 0, .stream = 7});
  const auto add = [&](uint64_t id, NodeKind kind, LaneId lane, int64_t begin, uint64_t parent) {
    NodeRow row{.source_id = id, .kind = kind, .parent = parent};
    row.place = lane == host ? Place::kHost : Place::kDevice;
    row.name = builder.Intern("n" + std::to_string(id));
    row.lane = lane;
    row.start = Nanos{begin * 1000};
    row.duration = Nanos{(lane == host ? 2 : 10) * 1000};
    return builder.AddNode(row);
  };
  add(1, NodeKind::kOperator, host, 0, 0);
  add(2, NodeKind::kKernel, stream, 5, 1);
  const NodeId wait = add(3, NodeKind::kSync, host, 14, 0);
  builder.AddDep(wait, uint64_t{2}, DepKind::kSync);
  add(4, NodeKind::kOperator, host, 20, 0);
  add(5, NodeKind::kKernel, stream, 25, 4);
  const Trace trace = builder.Finish().value();
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  EXPECT_EQ(AddLaunches(trace, Nanos{1'000}, rank), 2u);
  std::vector<std::string> launches;
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    if (!rank.nodes[i].on_host) continue;
    std::string& text = launches.emplace_back("after");
    for (const uint32_t dep : rank.DepsOf(i)) text += " " + rank.names[rank.nodes[dep].name];
  }
  // The first kernel follows the first launch, so the second launch waits for the kernel alone.
  EXPECT_EQ(launches, (std::vector<std::string>{"after", "after n2"}));
}

// Operators of 3 us from 0, 4 and 8, each of which launches a kernel after 1 us; kernels of 10 us
// run from 20 on. Launches at 1, 5 and 9 us; the host ends at 11. Kernels begin at 1, 11 and 21.
TEST(LaunchCost, RecordedLaunchesKeepTheirTimes) {
  const Trace trace = ThreeLaunches();
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  EXPECT_EQ(AddRecordedLaunches(trace, rank), 3u);
  std::vector<int64_t> ends;
  int64_t stream = 0;  // end of its last kernel
  std::map<std::string, std::vector<int64_t>> by_name;
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    int64_t begin = 0;
    for (const uint32_t dep : rank.DepsOf(i)) begin = std::max(begin, ends[dep]);
    if (!rank.nodes[i].on_host) begin = std::max(begin, stream);
    ends.push_back(begin + rank.nodes[i].duration->count / 1000);
    if (!rank.nodes[i].on_host) stream = ends.back();
    by_name[rank.names[rank.nodes[i].name]].push_back(ends.back());
  }
  EXPECT_EQ(by_name["launch"], (std::vector<int64_t>{1, 5, 9}));
  EXPECT_EQ(by_name["host"], (std::vector<int64_t>{11}));
  EXPECT_EQ(by_name["relu"], (std::vector<int64_t>{11, 21, 31}));
}

TEST(LaunchCost, RequiresDeviceWork) {
  const Trace trace = TraceOfCalls({{"aten::add", 5, {1, 2}, 3}});
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  EXPECT_FALSE(AddLaunches(trace, Nanos{1000}, rank));
  EXPECT_FALSE(AddRecordedLaunches(trace, rank));
}

TEST(LaunchCost, GapsAreThoseOfLabels) {
  RunnableRank rank;
  rank.names = {"aten::add", "in step"};
  RunnableNode node;
  node.kind = NodeKind::kOperator;
  node.duration = Nanos{5'000};
  rank.nodes.push_back(node);
  node.kind = NodeKind::kLabel;
  node.name = 1;
  rank.nodes.push_back(node);
  const RemovedGaps removed = RemoveGaps(rank);
  EXPECT_EQ(removed.nodes, 1u);
  EXPECT_EQ(removed.time, Nanos{5'000});
  EXPECT_EQ(TimedNodesOf(rank), (TimedNodes{{"aten::add", 5}, {"in step", 0}}));
}

}  // namespace
}  // namespace etude
