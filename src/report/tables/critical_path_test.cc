// Critical paths of synthetic runs, from the trace to its parts: analysis/critical_path with the
// waits found by transform/recorded_waits.
#include "src/analysis/time/critical_path.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "src/run/planted_trace.h"
#include "src/trace/trace_builder.h"
#include "src/trace/words/record_scope.h"

namespace etude {
namespace {

using testing_support::PlantedTrace;
using testing_support::Us;
using enum PathPart;

CriticalPath PathOf(const Trace& trace) { return FindCriticalPath(trace); }

// Part, name and microseconds of each stretch.
using Row = std::tuple<PathPart, std::string, int64_t>;
std::vector<Row> Rows(const Trace& trace, const CriticalPath& path) {
  std::vector<Row> rows;
  for (const CriticalPath::Stretch& stretch : path.stretches) {
    rows.emplace_back(stretch.part, trace.name(stretch.node), stretch.time->length().count / 1000);
  }
  return rows;
}

void ExpectBounds(const CriticalPath& path) {
  EXPECT_GE(path.length, path.longest_node);
  EXPECT_LE(path.length, path.work + (path.span ? path.span->length() : Nanos{}));
  if (path.span) {
    EXPECT_LE(path.length, path.span->length());
  }
  Nanos sum;
  for (const CriticalPath::Stretch& stretch : path.stretches) sum = sum + stretch.length;
  EXPECT_EQ(sum, path.length);
}

TEST(CriticalPath, OfNothing) {
  const Trace trace = PlantedTrace().Read();
  const CriticalPath path = PathOf(trace);
  EXPECT_EQ(path.length, Nanos{});
  EXPECT_TRUE(path.stretches.empty());
  EXPECT_EQ(path.nodes, 0u);
}

TEST(CriticalPath, OfOneNode) {
  const Trace trace = PlantedTrace().Operator("aten::mm", 1, 10, 30).Read();
  const CriticalPath path = PathOf(trace);
  EXPECT_EQ(Rows(trace, path), (std::vector<Row>{{kHost, "aten::mm", 20}}));
  EXPECT_EQ(path.length, Us(20));
  ExpectBounds(path);
}

TEST(CriticalPath, NestedOperatorsAndTheGapBetween) {
  const Trace trace = PlantedTrace()
                          .Operator("aten::linear", 1, 0, 100)
                          .Operator("aten::mm", 1, 20, 90)
                          .Operator("aten::relu", 1, 150, 160)
                          .Read();
  const CriticalPath path = PathOf(trace);
  EXPECT_EQ(Rows(trace, path), (std::vector<Row>{{kHost, "aten::linear", 20},
                                                 {kHost, "aten::mm", 70},
                                                 {kHost, "aten::linear", 10},
                                                 {kIdle, "aten::relu", 50},
                                                 {kHost, "aten::relu", 10}}));
  EXPECT_EQ(path.length, Us(110));
  EXPECT_EQ(path.longest_node, Us(70));
  ExpectBounds(path);
}

TEST(CriticalPath, LaunchDelayKernelQueueAndTheCallThatWaits) {
  const Trace trace = PlantedTrace()
                          .Operator("aten::mm", 1, 0, 20)
                          .Launch(1, 10, 15, 1)
                          .Kernel("gemm", 20, 30, 130, 1)
                          .Launch(1, 25, 28, 2)
                          .Kernel("relu", 20, 132, 200, 2)
                          .Call("cudaDeviceSynchronize", 1, 40, 210, 3)
                          .Read();
  const CriticalPath path = PathOf(trace);
  EXPECT_EQ(Rows(trace, path), (std::vector<Row>{{kHost, "aten::mm", 10},
                                                 {kLaunchDelay, "gemm", 20},
                                                 {kCompute, "gemm", 100},
                                                 {kQueueWait, "relu", 2},
                                                 {kCompute, "relu", 68},
                                                 {kSyncReturn, "cudaDeviceSynchronize", 10}}));
  EXPECT_EQ(path.length, Us(210)) << "all of the run";
  ExpectBounds(path);
}

TEST(CriticalPath, TheFirstCallWaitsForWorkOfBeforeTheRecording) {
  const Trace trace = PlantedTrace()
                          .Kernel("early", 20, 10, 90, 99)  // its launch was not recorded
                          .Call("cudaDeviceSynchronize", 1, 5, 100, 3)
                          .Launch(1, 110, 115, 1)
                          .Kernel("gemm", 20, 130, 200, 1)
                          .Read();
  const CriticalPath path = PathOf(trace);
  EXPECT_EQ(Rows(trace, path), (std::vector<Row>{{kCompute, "early", 80},
                                                 {kSyncReturn, "cudaDeviceSynchronize", 10},
                                                 {kIdle, "cudaLaunchKernel", 10},
                                                 {kLaunchDelay, "gemm", 20},
                                                 {kCompute, "gemm", 70}}));
}

TEST(CriticalPath, WorkThatEndsAfterTheCallThatWaitedForIt) {
  const auto rows = [](int64_t end) {
    const Trace trace = PlantedTrace()
                            .Launch(1, 0, 5, 1)
                            .Kernel("gemm", 20, 10, end, 1)
                            .Call("cudaDeviceSynchronize", 1, 20, 100, 3)
                            .Operator("aten::add", 1, 100, 300)
                            .Read();
    const CriticalPath path = PathOf(trace);
    ExpectBounds(path);
    return Rows(trace, path);
  };
  EXPECT_EQ(rows(108),
            (std::vector<Row>{
                {kLaunchDelay, "gemm", 10}, {kCompute, "gemm", 90}, {kHost, "aten::add", 200}}))
      << "the device's clock is ahead";
  EXPECT_EQ(rows(200).back(), (Row{kHost, "aten::add", 200}));
  for (const Row& row : rows(200))
    EXPECT_NE(std::get<1>(row), "gemm") << "it waited for other work";
}

TEST(CriticalPath, StreamsThatWaitForEachOther) {
  // The copy on stream 30 waits for gemm by a recorded event.
  const Trace trace = PlantedTrace()
                          .Launch(1, 0, 5, 1)
                          .Kernel("gemm", 20, 10, 100, 1)
                          .Call("cudaEventRecord", 1, 6, 7, 2)
                          .Call("cudaStreamWaitEvent", 1, 8, 9, 3)
                          .OnDevice("cuda_sync", "Stream Wait Event", 30, 8, 9, 3,
                                    "\"wait_on_cuda_event_record_corr_id\":2,\"wait_on_stream\":20")
                          .Launch(1, 10, 12, 4)
                          .Kernel("ncclDevKernel_AllReduce_Sum_f32", 30, 105, 165, 4)
                          .Read();
  const CriticalPath path = PathOf(trace);
  EXPECT_EQ(Rows(trace, path),
            (std::vector<Row>{{kLaunchDelay, "gemm", 10},
                              {kCompute, "gemm", 90},
                              {kQueueWait, "ncclDevKernel_AllReduce_Sum_f32", 5},
                              {kCommunication, "ncclDevKernel_AllReduce_Sum_f32", 60}}));
  ExpectBounds(path);
}

TEST(CriticalPath, WaitsThatAreNotRecordedAreGuessedFromWhatEnded) {
  // Without the profiler's synchronization records; with two streams, names do not determine the
  // stream.
  const Trace trace = PlantedTrace()
                          .Launch(1, 0, 5, 1)
                          .Kernel("gemm", 20, 10, 100, 1)
                          .Call("cudaStreamWaitEvent", 1, 8, 9, 3)
                          .Launch(1, 10, 12, 4)
                          .Kernel("ncclDevKernel_AllReduce_Sum_f32", 30, 105, 165, 4)
                          .Call("cudaStreamSynchronize", 1, 20, 170, 5)
                          .Operator("aten::item", 1, 180, 190)
                          .Read();
  const CriticalPath path = PathOf(trace);
  EXPECT_EQ(Rows(trace, path),
            (std::vector<Row>{{kLaunchDelay, "gemm", 10},
                              {kCompute, "gemm", 90},
                              {kQueueWait, "ncclDevKernel_AllReduce_Sum_f32", 5},
                              {kCommunication, "ncclDevKernel_AllReduce_Sum_f32", 60},
                              {kSyncReturn, "cudaStreamSynchronize", 5},
                              {kIdle, "aten::item", 10},
                              {kHost, "aten::item", 10}}));
  ExpectBounds(path);
}

TEST(CriticalPath, WorkThatBeginsBeforeTheOneBeforeItEnded) {
  // Programmatic dependent launch, long before the kernel could run.
  const Trace trace = PlantedTrace()
                          .Launch(1, 0, 5, 1)
                          .Launch(1, 6, 8, 2)
                          .Kernel("dgrad", 20, 10, 100, 1)
                          .Kernel("init", 20, 90, 110, 2)
                          .Read();
  const CriticalPath path = PathOf(trace);
  EXPECT_EQ(Rows(trace, path),
            (std::vector<Row>{
                {kLaunchDelay, "dgrad", 10}, {kCompute, "dgrad", 80}, {kCompute, "init", 20}}));
  ExpectBounds(path);
}

TEST(CriticalPath, ACallThatWaitsForWorkBesideThePath) {
  // The kernel is short. The thread's other work is not on the path, which is idle meanwhile.
  const Trace trace = PlantedTrace()
                          .Operator("aten::big", 1, 0, 500)
                          .Launch(1, 480, 490, 1)
                          .Kernel("small", 20, 520, 530, 1)
                          .Call("cudaDeviceSynchronize", 1, 505, 540, 2)
                          .Read();
  const CriticalPath path = PathOf(trace);
  // Through the kernel: 480 + 40 launch + 10 + 10 return; on the thread: 500 + 10.
  EXPECT_EQ(path.length, Us(540));
  ExpectBounds(path);
}

TEST(CriticalPath, AThreadThatStartsAfterAnotherOne) {
  const Trace trace =
      PlantedTrace().Operator("forward", 1, 0, 3000).Operator("backward", 2, 5000, 9000).Read();
  const CriticalPath path = PathOf(trace);
  EXPECT_EQ(Rows(trace, path),
            (std::vector<Row>{
                {kHost, "forward", 3000}, {kIdle, "backward", 2000}, {kHost, "backward", 4000}}));
  ExpectBounds(path);
}

// Like autograd's engine in a native capture: its thread works while the program's waits. Functions
// without a schema count as work; labels of the program do not.
TEST(CriticalPath, ThreadsOfANativeCapture) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kNative);
  uint64_t id = 0;
  const auto add = [&](std::string_view name, std::string_view thread, NodeKind kind, uint8_t scope,
                       int64_t begin, int64_t end) {
    builder.AddNode({.source_id = ++id,
                     .kind = kind,
                     .place = Place::kHost,
                     .name = builder.Intern(name),
                     .lane = builder.InternLane({.thread = builder.Intern(thread)}),
                     .start = Us(begin),
                     .duration = Us(end - begin),
                     .rf_id = id,
                     .scope = scope});
  };
  add("step", "1", NodeKind::kLabel, kUserScope, 0, 9000);
  add("forward", "1", NodeKind::kOperator, 0, 100, 2000);
  add("MulBackward0", "2", NodeKind::kLabel, kBackwardScope, 2500, 6500);
  add("aten::mul", "2", NodeKind::kOperator, 0, 3000, 6000);
  add("update", "1", NodeKind::kOperator, 0, 7000, 8000);
  const Trace trace = builder.Finish().value();
  const CriticalPath path = PathOf(trace);
  EXPECT_EQ(Rows(trace, path), (std::vector<Row>{{kHost, "forward", 1900},
                                                 {kIdle, "MulBackward0", 500},
                                                 {kHost, "MulBackward0", 500},
                                                 {kHost, "aten::mul", 3000},
                                                 {kHost, "MulBackward0", 500},
                                                 {kIdle, "update", 500},
                                                 {kHost, "update", 1000}}));
  ExpectBounds(path);
}

// Each request is looked up once, not on every other thread.
TEST(CriticalPath, ManyThreads) {
  constexpr int kThreads = 100'000;
  PlantedTrace planted;
  for (int thread = 0; thread < kThreads; ++thread) {
    planted.Operator("op", thread, 10 * thread, 10 * thread + 5);
  }
  const CriticalPath path = PathOf(planted.Read());
  EXPECT_EQ(path.length, Us(5 * kThreads));
  ExpectBounds(path);
}

Trace Durations(const std::vector<std::tuple<uint64_t, int64_t, std::vector<uint64_t>>>& nodes) {
  TraceBuilder builder;
  for (const auto& [id, microseconds, deps] : nodes) {
    NodeRow row{.source_id = id, .kind = NodeKind::kCompute, .place = Place::kUnknown};
    row.name = builder.Intern("n" + std::to_string(id));
    if (microseconds >= 0) row.duration = Us(microseconds);
    const NodeId node = builder.AddNode(row);
    for (const uint64_t dep : deps) builder.AddDep(node, dep, DepKind::kData);
  }
  return builder.Finish().value();
}

TEST(CriticalPath, ByDependenciesWhereStartsAreUnknown) {
  const Trace trace = Durations({{1, 10, {}}, {2, 30, {1}}, {3, 5, {1}}, {4, 7, {2, 3}}});
  const CriticalPath path = PathOf(trace);
  EXPECT_FALSE(path.by_clock);
  EXPECT_FALSE(path.span);
  EXPECT_EQ(path.length, Us(47));
  EXPECT_EQ(path.work, Us(52));
  ASSERT_EQ(path.stretches.size(), 3u);
  EXPECT_EQ(trace.name(path.stretches[1].node), "n2");
  ExpectBounds(path);
}

TEST(CriticalPath, NodesWithoutTimesHandOnTheOrderAndCyclesAreCut) {
  const Trace trace = Durations({{1, 10, {3}}, {2, -1, {1}}, {3, 20, {2}}});
  const CriticalPath path = PathOf(trace);
  EXPECT_EQ(path.length, Us(30));
  EXPECT_EQ(path.untimed, 1u);
  EXPECT_EQ(path.contradictions, 1u);
  ExpectBounds(path);
}

// Threads of random operators that launch random kernels, and threads that wait.
TEST(CriticalPath, IsNeverLongerThanTheRunNorShorterThanANode) {
  const bool holds = rc::check("bounds", [] {
    PlantedTrace planted;
    int correlation = 0;
    std::map<int, int64_t> stream_free;
    for (int thread = 1; thread <= 2; ++thread) {
      int64_t now = *rc::gen::inRange(0, 50);
      for (int i = *rc::gen::inRange(0, 8); i > 0; --i) {
        const int64_t begin = now;
        const int64_t length = *rc::gen::inRange(1, 40);
        const int stream = *rc::gen::inRange(20, 23);
        planted.Operator("op", thread, begin, begin + 3 * length);
        planted.Launch(thread, begin + length, begin + 2 * length, ++correlation);
        const int64_t start =
            std::max(stream_free[stream], begin + length + *rc::gen::inRange(0, 30));
        const int64_t end = start + *rc::gen::inRange(0, 60);
        planted.Kernel("kernel", stream, start, end, correlation);
        stream_free[stream] = end;
        now = begin + 3 * length + *rc::gen::inRange(0, 20);
        if (*rc::gen::inRange(0, 3) == 0) {
          const int64_t until = std::max(now, end) + *rc::gen::inRange(0, 5);
          planted.Call("cudaStreamSynchronize", thread, now, until, 1000 + i + 100 * thread);
          now = until;
        }
      }
    }
    const Trace trace = planted.Read();
    const CriticalPath path = PathOf(trace);
    ExpectBounds(path);
    Nanos last{INT64_MIN};
    for (const CriticalPath::Stretch& stretch : path.stretches) {
      RC_ASSERT(stretch.time->begin >= last);
      last = stretch.time->end;
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace etude
