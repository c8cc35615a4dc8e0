#include "src/run/calls/comm_log.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/run/planted_trace.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using testing_support::PlantedTrace;
using testing_support::Us;

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
  EXPECT_EQ(CommNodes(builder_.Finish().value()),
            (std::vector<CommNode>{{outer, {}}, {beside, {}}}));
}

TEST_F(CommNodesTest, WhatDevicesDidStandsForTheHostsCalls) {
  Add(NodeKind::kCollective, {});
  const NodeId kernel = Add(NodeKind::kCollective, 1, Place::kDevice);
  EXPECT_EQ(CommNodes(builder_.Finish().value()), (std::vector<CommNode>{{kernel, {}}}));
}

std::string SendOrRecv(const std::string& name, int peer, int64_t elements) {
  return R"("Collective name":")" + name + R"(","dtype":"Float","In msg nelems":)" +
         std::to_string(elements) + R"(,"Out msg nelems":)" + std::to_string(elements) +
         R"(,"Group size":4,"Process Group Name":"0",")" + (name == "send" ? "Dst" : "Src") +
         " Rank\":" + std::to_string(peer);
}

// Batches as PyTorch records batch_isend_irecv: the calls launch nothing, and one kernel without
// facts carries all of them. The calls of the first of two batches begin at `begin`.
PlantedTrace& AddBatches(PlantedTrace& trace) {
  const auto batch = [&](int64_t begin, int correlation, int64_t ended) {
    trace.Operator("c10d::send", 1, begin, begin + 10)
        .Operator("record_param_comms", 1, begin + 1, begin + 9, SendOrRecv("send", 3, 100))
        .Operator("c10d::recv_", 1, begin + 10, begin + 20)
        .Operator("record_param_comms", 1, begin + 11, begin + 19, SendOrRecv("recv", 2, 200))
        .Label("nccl:coalesced", 1, begin + 20, begin + 30)
        .Launch(1, begin + 21, begin + 25, correlation)
        .Kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 17, ended - 40, ended,
                correlation);
  };
  batch(0, 1, 100);
  batch(40, 2, 180);
  return trace;
}

TEST(CommLog, CallsOfABatchStandForTheKernelThatCarriedThem) {
  PlantedTrace planted;
  // A collective of the same group has its own kernel.
  planted
      .Operator("record_param_comms", 1, 80, 90,
                R"("Collective name":"allreduce","dtype":"Float","In msg nelems":10,)"
                R"("Process Group Name":"0","Group size":4)")
      .Launch(1, 81, 85, 3)
      .OnDevice("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 17, 200, 230, 3,
                R"("Collective name":"allreduce","dtype":"Float","In msg nelems":10,)"
                R"("Process Group Name":"0","Group size":4)");
  const Trace trace = AddBatches(planted).Read();
  const CommLog log = ReadCommLog(trace, 1);
  ASSERT_EQ(log.calls.size(), 5u);
  for (const size_t i : {size_t{0}, size_t{2}}) {
    const CommCall& send = log.calls[i];
    const CommCall& recv = log.calls[i + 1];
    EXPECT_EQ(send.kind, NodeKind::kSend);
    EXPECT_EQ(send.peer, 3);
    EXPECT_EQ(send.bytes, Bytes{400});
    EXPECT_EQ(recv.kind, NodeKind::kRecv);
    EXPECT_EQ(recv.peer, 2);
    for (const CommCall& call : {send, recv}) {
      EXPECT_EQ(call.begin, Us(i == 0 ? 60 : 140)) << "of the kernel";
      EXPECT_EQ(call.end, Us(i == 0 ? 100 : 180));
      EXPECT_EQ(trace.place(call.row), Place::kDevice);
    }
  }
  EXPECT_EQ(log.calls[4].type, CollectiveType::kAllReduce);
  EXPECT_EQ(log.calls[4].index, 0u) << "batches are no collectives of the group";
}

// A kernel stands for itself if its calls are not recorded or have kernels of their own.
TEST(CommLog, AKernelWithoutCallsStandsForItself) {
  const Trace trace =
      PlantedTrace()
          .Operator("record_param_comms", 1, 0, 20, SendOrRecv("send", 3, 100))
          .Launch(1, 5, 6, 1)
          .OnDevice("kernel", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 17, 30,
                    40, 1, SendOrRecv("send", 3, 100))
          .Label("nccl:coalesced", 1, 20, 30)
          .Launch(1, 21, 22, 2)
          .Kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 17, 50, 60, 2)
          .Read();
  const CommLog log = ReadCommLog(trace, 1);
  ASSERT_EQ(log.calls.size(), 2u);
  EXPECT_EQ(log.calls[0].kind, NodeKind::kSend);
  EXPECT_EQ(log.calls[0].end, Us(40));
  EXPECT_EQ(log.calls[1].kind, NodeKind::kCollective);
  EXPECT_EQ(log.calls[1].type, CollectiveType::kUnknown);
}

// Gloo's threads may start work in another order than that of issue.
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
  builder.AddDep(gather, 2, DepKind::kSync);  // previous work on another thread
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

// c10d calls return before their collective is over, regardless of `async_op`.
TEST(CommLog, HowLongACollectiveTookWhoseLabelIsLostIsUnknown) {
  TraceBuilder builder;
  for (const std::string_view name : {"gloo:all_reduce", "c10d::allreduce_"}) {
    const NodeId node = builder.AddNode({.source_id = builder.node_count(),
                                         .kind = NodeKind::kCollective,
                                         .place = Place::kHost,
                                         .name = builder.Intern(name),
                                         .start = Nanos{100},
                                         .duration = Nanos{10}});
    builder.SetComm(node, {.type = CollectiveType::kAllReduce, .bytes = Bytes{64}});
  }
  const Trace trace = builder.Finish().value();
  std::vector<std::optional<Nanos>> durations;
  for (const CommNode& one : CommNodes(trace)) durations.push_back(CommDuration(trace, one));
  EXPECT_EQ(durations, (std::vector<std::optional<Nanos>>{Nanos{10}, std::nullopt}));
  const CommLog log = ReadCommLog(trace, 0);
  ASSERT_EQ(log.calls.size(), 2u);
  EXPECT_EQ(log.calls[0].end, Nanos{110});
  EXPECT_EQ(log.calls[1].end, std::nullopt);
}

TEST(CommLog, ACollectiveOfUnknownTypeIsCalledOne) {
  CommLog log;
  log.groups.push_back({.name = "dp"});
  EXPECT_EQ(CommCall{.index = 2}.Text(log), "collective #2 of group 'dp'");
  EXPECT_EQ((CommCall{.name = "coalesced", .index = 2}.Text(log)), "coalesced #2 of group 'dp'");
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

// An unnamed group has all ranks, unless the trace has a smaller one.
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

// Deeply nested calls: the way up must be walked only once.
TEST_F(CommNodesTest, DeepNesting) {
  constexpr uint64_t kDepth = 200'000;
  Add(NodeKind::kOperator, {});
  while (last_ < kDepth) Add(NodeKind::kOperator, last_);
  for (uint64_t i = 0; i < kDepth; ++i) Add(NodeKind::kSend, kDepth);
  EXPECT_EQ(CommNodes(builder_.Finish().value()).size(), kDepth);
}

}  // namespace
}  // namespace etude
