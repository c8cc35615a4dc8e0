#include "src/analysis/view/trace_stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "src/analysis/view/modules.h"
#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/run/planted_trace.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using testing_support::PlantedTrace;
using testing_support::Us;

const TraceStats::Op* Find(const TraceStats& stats, std::string_view name) {
  const auto found = std::ranges::find(stats.ops, name, &TraceStats::Op::name);
  return found == stats.ops.end() ? nullptr : &*found;
}

TEST(TraceStats, AnEmptyTrace) {
  const TraceStats stats = CountTrace(PlantedTrace().Read());
  EXPECT_EQ(stats.nodes, 0u);
  EXPECT_FALSE(stats.span);
  EXPECT_TRUE(stats.ops.empty() && stats.kinds.empty() && stats.lanes.empty());
}

TEST(TraceStats, OperatorsCountWithAndWithoutWhatTheyCall) {
  const Trace trace = PlantedTrace()
                          .Operator("aten::linear", 1, 0, 100)
                          .Operator("aten::mm", 1, 10, 60)
                          .Operator("aten::mm", 1, 70, 100)
                          .Operator("aten::mm", 2, 0, 20)
                          .Read();
  const TraceStats stats = CountTrace(trace);
  EXPECT_EQ(stats.span, Us(100));
  ASSERT_EQ(stats.ops.size(), 2u);
  EXPECT_EQ(stats.ops[0].name, "aten::mm") << "most time of its own";
  EXPECT_EQ(stats.ops[0].count, 3u);
  EXPECT_EQ(stats.ops[0].self, Us(100));
  EXPECT_EQ(stats.ops[0].durations->median, Us(30));
  EXPECT_EQ(stats.ops[0].durations->min, Us(20));
  EXPECT_EQ(stats.ops[0].longest, Us(50));
  EXPECT_EQ(stats.ops[1].self, Us(20));
  EXPECT_EQ(stats.ops[1].total, Us(100));
  ASSERT_EQ(stats.lanes.size(), 2u);
  EXPECT_EQ(stats.lanes[0].thread, "1");
  EXPECT_EQ(stats.lanes[0].busy, Us(100));
  EXPECT_EQ(stats.lanes[1].busy, Us(20));
  EXPECT_EQ(stats.lanes[1].share, 0.2);
  ASSERT_EQ(stats.kinds.size(), 1u);
  EXPECT_EQ(stats.kinds[0].self, Us(120));
}

TEST(TraceStats, ModulesByNestingLaunchAndSequenceNumber) {
  const Trace trace =
      PlantedTrace()
          .Label("nn.Module: Net_0", 1, 0, 100)
          .Label("nn.Module: Linear_0", 1, 10, 60)
          .Operator("aten::linear", 1, 20, 50, "\"Sequence number\":5,\"Fwd thread id\":0")
          .Launch(1, 30, 35, 7)
          .Kernel("gemm", 20, 40, 90, 7)
          .Operator("aten::relu", 1, 70, 80)
          .Operator("autograd::engine::evaluate_function: AddmmBackward0", 2, 200, 300,
                    "\"Sequence number\":5,\"Fwd thread id\":1")
          .Operator("aten::mm", 2, 210, 290)
          .Launch(2, 220, 225, 8)
          .Kernel("gemm", 20, 230, 250, 8)
          .Operator("aten::zero_", 1, 400, 410)
          .Read();
  const TraceStats stats = CountTrace(trace);
  ASSERT_EQ(stats.modules.size(), 3u);
  EXPECT_EQ(stats.modules[0].name, "nn.Module: Linear_0");
  EXPECT_EQ(stats.modules[0].operators, 2u) << "forward, and what autograd runs for it";
  EXPECT_EQ(stats.modules[0].device_ops, 2u);
  EXPECT_EQ(stats.modules[0].device_time, Us(50 + 20));
  EXPECT_EQ(stats.modules[0].host_self, Us(25 + 75)) << "without the calls of the runtime";
  EXPECT_EQ(stats.modules[1].name, "(no module)");
  EXPECT_EQ(stats.modules[1].host_self, Us(10));
  EXPECT_EQ(stats.modules[2].name, "nn.Module: Net_0");
  EXPECT_EQ(stats.modules[2].host_self, Us(10));
}

TEST(TraceStats, TheLastOperatorOfASequenceNumberMadeItsNode) {
  const char* const kForward = "\"Sequence number\":5,\"Fwd thread id\":0";
  const Trace trace = PlantedTrace()
                          .Label("nn.Module: Attention_0", 1, 0, 50)
                          .Operator("aten::to", 1, 10, 20, kForward)
                          .Label("nn.Module: Dropout_0", 1, 60, 90)
                          .Operator("aten::native_dropout", 1, 70, 80, kForward)
                          .Operator("NativeDropoutBackward0", 2, 200, 300,
                                    "\"Sequence number\":5,\"Fwd thread id\":1")
                          .Read();
  const TraceStats stats = CountTrace(trace);
  ASSERT_EQ(stats.modules.size(), 2u);
  EXPECT_EQ(stats.modules[0].name, "nn.Module: Dropout_0");
  EXPECT_EQ(stats.modules[0].host_self, Us(10 + 100));
  EXPECT_EQ(stats.modules[1].name, "nn.Module: Attention_0");
}

// Sequence numbers are per thread.
TEST(TraceStats, ModulesOfBackwardOperatorsByThread) {
  TraceBuilder builder;
  const auto add = [&](NodeKind kind, std::string_view name, uint64_t tid,
                       std::optional<uint64_t> parent, uint64_t fw_tid = 0) {
    NodeRow row{.source_id = builder.node_count(), .kind = kind, .place = Place::kHost};
    row.name = builder.Intern(name);
    row.parent = parent;
    row.tid = tid;
    if (kind == NodeKind::kOperator) row.seq_id = 7;
    row.fw_tid = fw_tid;
    builder.AddNode(row);
    return row.source_id;
  };
  const uint64_t first = add(NodeKind::kLabel, "nn.Module: First_0", 1, std::nullopt);
  add(NodeKind::kOperator, "aten::mm", 1, first);
  const uint64_t second = add(NodeKind::kLabel, "nn.Module: Second_0", 2, std::nullopt);
  add(NodeKind::kOperator, "aten::mm", 2, second);
  const uint64_t of_first = add(NodeKind::kOperator, "MmBackward0", 3, std::nullopt, 1);
  const uint64_t of_second = add(NodeKind::kOperator, "MmBackward0", 3, std::nullopt, 2);
  const Trace trace = builder.Finish().value();
  const Launches launches(trace);
  const Modules modules(trace, launches);
  EXPECT_EQ(modules.name(trace.Find(of_first)), "nn.Module: First_0");
  EXPECT_EQ(modules.name(trace.Find(of_second)), "nn.Module: Second_0");
}

TEST(TraceStats, UsersLabelsWhereThereAreNoModules) {
  const Trace trace = PlantedTrace()
                          .Label("ProfilerStep#1", 1, 0, 200)
                          .Label("## forward ##", 1, 10, 60)
                          .Operator("aten::mm", 1, 20, 50)
                          .Operator("aten::add", 1, 70, 80)
                          .Read();
  const TraceStats stats = CountTrace(trace);
  ASSERT_EQ(stats.modules.size(), 2u);
  EXPECT_EQ(stats.modules[0].name, "## forward ##");
  EXPECT_EQ(stats.modules[1].name, "(no module)") << "a step is none";
}

TEST(TraceStats, VolumeOfCommunication) {
  const auto collective = [](int elements, int group) {
    return "\"Collective name\":\"allreduce\",\"dtype\":\"Float\",\"In msg nelems\":" +
           std::to_string(elements) + ",\"Out msg nelems\":" + std::to_string(elements) +
           ",\"Process Group Name\":\"" + std::to_string(group) + "\"";
  };
  const Trace trace =
      PlantedTrace()
          .OnDevice("kernel", "ncclDevKernel_AllReduce", 30, 0, 10, 1, collective(1000, 0))
          .OnDevice("kernel", "ncclDevKernel_AllReduce", 30, 20, 50, 2, collective(3000, 0))
          .OnDevice("kernel", "ncclDevKernel_AllReduce", 30, 60, 70, 3, collective(10, 1))
          .Read();
  const TraceStats stats = CountTrace(trace);
  ASSERT_EQ(stats.communications.size(), 2u);
  const TraceStats::Communication& row = stats.communications[0];
  EXPECT_EQ(row.type, "all_reduce");
  EXPECT_EQ(row.group, "0");
  EXPECT_EQ(row.dtype, DType::kFloat32);
  EXPECT_EQ(row.count, 2u);
  EXPECT_EQ(row.bytes, Bytes{16000});
  EXPECT_EQ(row.smallest, Bytes{4000});
  EXPECT_EQ(row.largest, Bytes{12000});
  EXPECT_EQ(row.time, Us(40));
  EXPECT_DOUBLE_EQ(*row.bytes_per_s, 16000 / 40e-6);
}

TEST(TraceStats, SizesAndShapesOfTensors) {
  const auto node = [](int id, int rows) {
    const std::string shape = "[[" + std::to_string(rows) + ",4]]";
    const std::string tensor = "[[1,2,0," + std::to_string(rows * 4) + ",4,\"cpu\"]]";
    return R"et({"id":)et" + std::to_string(id) +
           R"et(,"name":"aten::relu","ctrl_deps":1,"inputs":{"values":)et" + tensor +
           R"et(,"shapes":)et" + shape + R"et(,"types":["Tensor(float)"]},"outputs":{"values":)et" +
           tensor + R"et(,"shapes":)et" + shape +
           R"et(,"types":["Tensor(float)"]},"attrs":[{"name":"op_schema","type":"string","value":"x"}]})et";
  };
  const Trace trace = testing_support::ReadWith(MakeEtJsonReader,
                                                R"et({"schema":"1.1.1","nodes":[)et" + node(2, 8) +
                                                    "," + node(3, 8) + "," + node(4, 2) + "]}")
                          .value();
  const TraceStats stats = CountTrace(trace);
  const TraceStats::Op* op = Find(stats, "aten::relu");
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->count, 3u);
  EXPECT_EQ(op->shapes, 2u);
  EXPECT_EQ(op->inputs, Bytes{(8 + 8 + 2) * 16});
  EXPECT_EQ(op->outputs, Bytes{(8 + 8 + 2) * 16});
  EXPECT_FALSE(op->total) << "no times";
}

// Two sends of a batch take the time of the kernel that carries both.
TEST(TraceStats, ABatchOfMessagesCountsItsKernelOnce) {
  const auto message = [](const std::string& name, const std::string& peer) {
    return R"("Collective name":")" + name + R"(","dtype":"Float","In msg nelems":1000,)" +
           R"("Out msg nelems":1000,"Process Group Name":"0",")" + peer + "\":1";
  };
  const Trace trace =
      PlantedTrace()
          .Operator("record_param_comms", 1, 0, 10, message("send", "Dst Rank"))
          .Operator("record_param_comms", 1, 10, 20, message("send", "Dst Rank"))
          .Operator("record_param_comms", 1, 20, 30, message("recv", "Src Rank"))
          .Label("nccl:coalesced", 1, 30, 40)
          .Launch(1, 31, 35, 1)
          .Kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 17, 100, 140, 1)
          .Read();
  const TraceStats stats = CountTrace(trace);
  ASSERT_EQ(stats.communications.size(), 2u) << "no row of which nothing is known";
  EXPECT_EQ(stats.communications[0].type, "recv");
  EXPECT_EQ(stats.communications[0].time, Us(40));
  EXPECT_EQ(stats.communications[1].type, "send");
  EXPECT_EQ(stats.communications[1].count, 2u);
  EXPECT_EQ(stats.communications[1].bytes, Bytes{8000});
  EXPECT_EQ(stats.communications[1].time, Us(40));
  EXPECT_EQ(stats.communications[1].bytes_per_s, 2e8);
  ASSERT_EQ(stats.modules.size(), 1u) << "a label of communication is no module";
  EXPECT_EQ(stats.modules[0].name, "(no module)");
}

TEST(TraceStats, CopiesByWhereFromAndWhereTo) {
  const Trace trace =
      PlantedTrace()
          .OnDevice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 0, 10, 1, "\"bytes\":1000")
          .OnDevice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 10, 40, 2, "\"bytes\":3000")
          .OnDevice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 40, 90, 3, "")
          .OnDevice("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 7, 90, 91, 4,
                    "\"bytes\":\"many\"")
          .OnDevice("gpu_memset", "Memset (Device)", 7, 91, 93, 5, "\"bytes\":4")
          .Kernel("gemm", 7, 93, 99, 6)
          .Read();
  const TraceStats stats = CountTrace(trace);
  ASSERT_EQ(stats.copies.size(), 3u);
  const TraceStats::Copy& up = stats.copies[0];
  EXPECT_EQ(up.name, "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(up.count, 3u);
  EXPECT_EQ(up.sized, 2u);
  EXPECT_EQ(up.bytes, Bytes{4000});
  EXPECT_EQ(up.smallest, Bytes{1000});
  EXPECT_EQ(up.largest, Bytes{3000});
  EXPECT_EQ(up.time, Us(90));
  EXPECT_EQ(up.bytes_per_s, 1e8) << "of those with a size";
  EXPECT_EQ(stats.copies[1].kind, NodeKind::kMemset);
  EXPECT_EQ(stats.copies[2].sized, 0u);
  EXPECT_FALSE(stats.copies[2].bytes_per_s);
}

}  // namespace
}  // namespace etude
