#include "src/transform/to_chakra.h"
#include "src/trace/words/operator_name.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/run/waits/recorded_waits.h"
#include "src/trace/carried_stats.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

class Sketch {
 public:
  explicit Sketch(TraceFormat format = TraceFormat::kLinked) { builder.info().SetFormat(format); }

  NodeId Add(uint64_t id, NodeKind kind, Place place, int64_t parent = -1,
             const std::string& name = "") {
    row.source_id = id;
    row.kind = kind;
    row.place = place;
    row.name = builder.Intern(name.empty() ? "n" + std::to_string(id) : name);
    if (parent >= 0) row.parent = static_cast<uint64_t>(parent);
    const NodeId node = builder.AddNode(row);
    row = NodeRow();
    return node;
  }
  LaneId Stream(int32_t stream) { return builder.InternLane({.device = 0, .stream = stream}); }
  Trace Finish() { return builder.Finish().value(); }

  TraceBuilder builder;
  NodeRow row;
};

using EdgeSet = std::set<std::pair<uint64_t, uint64_t>>;

EdgeSet DepsOf(const Trace& trace, DepKind kind) {
  EdgeSet edges;
  ForEachNode(trace, [&](NodeId node) {
    for (size_t i = 0; i < trace.deps(node).size(); ++i) {
      if (trace.dep_kinds(node)[i] != kind) continue;
      edges.emplace(trace.source_id(node), trace.source_id(trace.deps(node)[i]));
    }
  });
  return edges;
}

ToChakraResult Convert(const Trace& trace, bool break_cycles = false) {
  auto result = ToChakra(trace, {.break_cycles = break_cycles});
  EXPECT_TRUE(result.has_value()) << result.error().message;
  EXPECT_TRUE(result->trace.is_acyclic());
  EXPECT_EQ(result->trace.node_count(), trace.node_count()) << "no node is lost";
  return *std::move(result);
}

// A process, two threads; 4 below 3, 6 below 5; kernels 10 and 11 on one stream, 12 on another.
Trace TwoThreads() {
  Sketch sketch;
  sketch.Add(1, NodeKind::kProcess, Place::kHost);
  sketch.Add(2, NodeKind::kThread, Place::kHost, 1);
  // In the order in which the observer writes them: children first.
  sketch.Add(4, NodeKind::kOperator, Place::kHost, 3);
  sketch.Add(3, NodeKind::kOperator, Place::kHost, 2);
  sketch.Add(7, NodeKind::kOperator, Place::kHost, 2);
  sketch.Add(5, NodeKind::kThread, Place::kHost, 1);
  sketch.Add(6, NodeKind::kOperator, Place::kHost, 5);
  const auto kernel = [&](uint64_t id, int64_t parent, int64_t start, int32_t stream) {
    sketch.row.start = Nanos{start};
    sketch.row.duration = Nanos{10};
    sketch.row.lane = sketch.Stream(stream);
    sketch.Add(id, NodeKind::kKernel, Place::kDevice, parent);
  };
  kernel(10, 4, 200, 7);
  kernel(11, 7, 100, 7);
  kernel(12, 6, 150, 8);
  return sketch.Finish();
}

TEST(ToChakra, MakesEveryOrderADependency) {
  const ToChakraResult result = Convert(TwoThreads());
  EXPECT_EQ(DepsOf(result.trace, DepKind::kData),
            (EdgeSet{{3, 2}, {4, 3}, {7, 4}, {6, 5}, {10, 4}, {11, 7}, {12, 6}}));
  EXPECT_EQ(DepsOf(result.trace, DepKind::kSync), (EdgeSet{{10, 11}}));
  EXPECT_EQ(result.order_edges, 4u);
  EXPECT_EQ(result.stream_edges, 1u);
  EXPECT_EQ(result.launch_edges, 3u);
  EXPECT_EQ(result.contradictions, 0u);
}

// Two processes, as `merge` makes of two ranks: in each, a thread works for 30 ms and another one
// continues afterwards.
TEST(ToChakra, ThreadsOfANativeCaptureWaitForThoseOfTheirProcess) {
  Sketch sketch(TraceFormat::kNative);
  uint64_t id = 0;
  for (const char* process : {"rank 0", "rank 1"}) {
    const auto add = [&](const char* thread, int64_t start, int64_t duration) {
      sketch.row.lane = sketch.builder.InternLane(
          {.process = sketch.builder.Intern(process), .thread = sketch.builder.Intern(thread)});
      sketch.row.start = Nanos{start * 1'000'000};
      sketch.row.duration = Nanos{duration * 1'000'000};
      sketch.Add(++id, NodeKind::kOperator, Place::kHost);
    };
    add("main", 0, 2);
    add("worker", 1, 30);
    add("main", 32, 1);
  }
  const Trace trace = sketch.Finish();
  const ToChakraResult result = Convert(trace);
  EXPECT_EQ(DepsOf(result.trace, DepKind::kSync), (EdgeSet{{3, 2}, {6, 5}}));
  EXPECT_EQ(result.thread_edges, 2u);
  const Trace linked = WithThreadWaits(trace, {}).value();
  EXPECT_EQ(DepsOf(linked, DepKind::kSync), (EdgeSet{{3, 2}, {6, 5}}));
}

// The node after a synchronous collective depends on its label, even after a short wait and if the
// label ends late; the node after an asynchronous one depends on nothing.
TEST(ToChakra, SynchronousCollectivesAreWaitedFor) {
  Sketch sketch(TraceFormat::kNative);
  uint64_t id = 0;
  const auto add = [&](const char* name, const char* thread, int64_t start, int64_t duration,
                       std::optional<bool> async = std::nullopt) {
    sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern(thread)});
    sketch.row.start = Nanos{start * 1000};
    sketch.row.duration = Nanos{duration * 1000};
    if (async) {
      sketch.row.op_schema =
          sketch.builder.Intern("c10d::allreduce_(Tensor[] tensors, bool async_op=True) -> X");
      sketch.row.inputs =
          sketch.builder.InternValues(std::vector{Value::Int({}, 0), Value::Bool({}, *async)});
    }
    return sketch.Add(++id, NodeKind::kOperator, Place::kHost, -1, name);
  };
  add("c10d::allreduce_", "main", 0, 10, true);                   // 1
  add("gloo:all_reduce", "gloo 1", 5, 500);                       // 2
  add("c10d::allreduce_", "main", 20, 10, false);                 // 3
  add("aten::inside", "main", 22, 1);                             // 4
  add("gloo:barrier", "gloo 3", 23, 10);                          // 5
  const NodeId label = add("gloo:all_reduce", "gloo 2", 25, 45);  // 6
  sketch.builder.AddDep(label, NodeId(2), DepKind::kControl);
  add("aten::mul", "main", 60, 10);                // 7
  add("c10d::allreduce_", "main", 80, 10, false);  // 8
  add("gloo:all_reduce", "gloo 2", 95, 3'000);     // 9
  add("aten::mul", "main", 1'000, 10);             // 10
  const Trace trace = sketch.Finish();
  const EdgeSet waits = DepsOf(Convert(trace).trace, DepKind::kSync);
  EXPECT_TRUE(waits.contains({7, 6}));
  EXPECT_TRUE(waits.contains({10, 9}));
  for (const auto& [node, before] : waits) {
    EXPECT_NE(before, 2U) << node;
    EXPECT_NE(before, 5U) << node;
  }
}

// The host runs concurrently with Gloo's own threads, and its waits for them are not its own time.
TEST(ToChakra, GloosThreadsAreBesideTheHost) {
  Sketch sketch(TraceFormat::kLinked);
  uint64_t id = 0;
  const auto add = [&](NodeKind kind, const char* name, const char* thread, int64_t start,
                       int64_t duration, int64_t parent = -1) {
    sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern(thread)});
    sketch.row.start = Nanos{start};
    sketch.row.duration = sketch.row.exclusive = Nanos{duration};
    return sketch.Add(++id, kind, Place::kHost, parent, name);
  };
  add(NodeKind::kLabel, "step", "main", 0, 1'000);                               // 1
  add(NodeKind::kOperator, "c10d::allreduce_", "main", 10, 10, 1);               // 2
  add(NodeKind::kCollective, "gloo:all_reduce", "gloo", 15, 500, 2);             // 3
  const NodeId mul = add(NodeKind::kOperator, "aten::mul", "main", 520, 10, 1);  // 4
  add(NodeKind::kCollective, "gloo:all_reduce", "gloo", 600, 100, 2);            // 5
  sketch.builder.AddDep(mul, uint64_t{3}, DepKind::kSync);
  const Trace made = Convert(sketch.Finish()).trace;
  EXPECT_EQ(DepsOf(made, DepKind::kData), (EdgeSet{{2, 1}, {4, 2}, {5, 3}}));
  EXPECT_EQ(made.exclusive(made.Find(1)), Nanos{1'000 - 10 - 10 - (515 - 20)});
  EXPECT_EQ(made.exclusive(made.Find(3)), Nanos{500});
}

// An operator's own work is not a gap, even long after its callees have ended.
TEST(ToChakra, AnOperatorThatWorksDoesNotWait) {
  for (const char* name : {"aten::addmm", "c10d::allgather_", "autograd::engine"}) {
    Sketch sketch(TraceFormat::kNative);
    uint64_t id = 0;
    const auto add = [&](const char* node, const char* thread, int64_t start, int64_t duration,
                         int64_t parent = -1) {
      sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern(thread)});
      sketch.row.start = Nanos{start * 1'000'000};
      sketch.row.duration = Nanos{duration * 1'000'000};
      sketch.Add(++id, NodeKind::kOperator, Place::kHost, parent, node);
    };
    add(name, "main", 0, 20);
    add("aten::expand", "main", 1, 1, 1);
    add("gloo:all_gather", "gloo", 1, 9);
    add("aten::square", "main", 20, 1);
    const EdgeSet waits = DepsOf(Convert(sketch.Finish()).trace, DepKind::kSync);
    EXPECT_EQ(waits.contains({4, 3}), std::string_view(name).starts_with("autograd")) << name;
  }
}

// Users of a collective's results wait for it: the copy on Gloo's thread is a part of it, and a
// concurrent user of other memory waits for nothing.
TEST(ToChakra, ResultsOfCollectivesAreWaitedFor) {
  Sketch sketch(TraceFormat::kNative);
  uint64_t id = 0;
  const auto tensor = [&](uint64_t storage) {
    TensorUse use;
    use.tensor = use.storage = storage;
    return Value::Tensor({}, sketch.builder.InternTensor(use));
  };
  const auto add = [&](const char* name, const char* thread, int64_t start, int64_t duration,
                       const std::vector<Value>& inputs) {
    sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern(thread)});
    sketch.row.start = Nanos{start * 1000};
    sketch.row.duration = Nanos{duration * 1000};
    sketch.row.inputs = sketch.builder.InternValues(inputs);
    if (IsC10dOperator(name)) {
      sketch.row.op_schema = sketch.builder.Intern(
          "c10d::allgather_(Tensor[] output_tensors, Tensor[] input_tensors) -> X");
    }
    sketch.Add(++id, NodeKind::kOperator, Place::kHost, -1, name);
  };
  add("c10d::allgather_", "main", 0, 10, {tensor(7), tensor(8)});  // 1
  add("gloo:all_gather", "gloo", 5, 500, {tensor(8)});             // 2
  add("aten::mul", "main", 100, 10, {tensor(8)});                  // 3: reads the sent data
  add("aten::copy_", "gloo", 400, 10, {tensor(7)});                // 4
  add("aten::add", "main", 450, 10, {tensor(9)});                  // 5
  add("aten::sum", "main", 490, 10, {tensor(7)});                  // 6: the label is about to end
  add("aten::sum", "main", 600, 10, {tensor(7)});                  // 7
  const EdgeSet waits = DepsOf(Convert(sketch.Finish()).trace, DepKind::kSync);
  EXPECT_TRUE(waits.contains({6, 2}));
  for (const auto& [node, before] : waits) EXPECT_TRUE(before != 2 || node == 6) << node;
}

// A functional collective: the program passes the results on before it waits for them, shortly
// before the label ends. Only what follows its wait has waited.
TEST(ToChakra, WhoUsesResultsBeforeTheWaitDidNotWait) {
  Sketch sketch(TraceFormat::kNative);
  uint64_t id = 0;
  const Value of_seven =
      Value::Tensor({}, sketch.builder.InternTensor({.tensor = 7, .storage = 7}));
  const auto add = [&](const char* name, const char* thread, int64_t start, int64_t duration,
                       const std::vector<Value>& inputs) {
    sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern(thread)});
    sketch.row.start = Nanos{start * 1000};
    sketch.row.duration = Nanos{duration * 1000};
    sketch.row.inputs = sketch.builder.InternValues(inputs);
    if (IsC10dOperator(name)) {
      sketch.row.op_schema = sketch.builder.Intern("c10d::allreduce_(Tensor[] tensors) -> X");
    }
    sketch.Add(++id, NodeKind::kOperator, Place::kHost, -1, name);
  };
  add("c10d::allreduce_", "main", 0, 10, {of_seven});                  // 1
  add("gloo:all_reduce", "gloo", 5, 600, {of_seven});                  // 2
  add("_c10d_functional::wrap", "main", 20, 5, {of_seven});            // 3
  add("_c10d_functional::wait_tensor", "main", 100, 510, {of_seven});  // 4
  add("aten::add", "main", 620, 10, {of_seven});                       // 5
  EdgeSet waits = DepsOf(Convert(sketch.Finish()).trace, DepKind::kSync);
  std::erase_if(waits, [](const auto& edge) { return edge.second != 2; });
  EXPECT_EQ(waits, (EdgeSet{{5, 2}}));
}

// A program works on its own for 5 ms at a time while results for later use arrive.
TEST(ToChakra, WhatIsUsedLaterIsNotWaitedForInEachGap) {
  const auto waiter = [](int64_t label_ends) {
    Sketch sketch(TraceFormat::kNative);
    uint64_t id = 0;
    const Value of_seven =
        Value::Tensor({}, sketch.builder.InternTensor({.tensor = 7, .storage = 7}));
    const auto add = [&](const char* name, const char* thread, int64_t start, int64_t duration,
                         const std::vector<Value>& inputs = {}) {
      sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern(thread)});
      sketch.row.start = Nanos{start * 1000};
      sketch.row.duration = Nanos{duration * 1000};
      sketch.row.inputs = sketch.builder.InternValues(inputs);
      if (IsC10dOperator(name)) {
        sketch.row.op_schema = sketch.builder.Intern("c10d::allreduce_(Tensor[] tensors) -> X");
      }
      sketch.Add(++id, NodeKind::kOperator, Place::kHost, -1, name);
    };
    add("c10d::allreduce_", "main", 0, 10, {of_seven});             // 1
    add("gloo:all_reduce", "gloo", 5, label_ends - 5, {of_seven});  // 2
    add("aten::mul", "main", 5'000, 10);                            // 3
    add("aten::mul", "main", 10'000, 10);                           // 4
    add("aten::sum", "main", 15'000, 10, {of_seven});               // 5
    EdgeSet waits = DepsOf(Convert(sketch.Finish()).trace, DepKind::kSync);
    std::erase_if(waits, [](const auto& edge) { return edge.second != 2; });
    return waits;
  };
  EXPECT_EQ(waiter(7'000), (EdgeSet{{5, 2}}));
  EXPECT_EQ(waiter(9'950), (EdgeSet{{4, 2}, {5, 2}})) << "woken by it, it seems";
}

// Two messages of one thread, which ends their labels after waiting for both.
TEST(ToChakra, WhatComesBehindItsMessagesWaitsForThem) {
  Sketch sketch(TraceFormat::kNative);
  uint64_t id = 0;
  const auto add = [&](const char* name, NodeKind kind, int64_t start, int64_t duration) {
    sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern("main")});
    sketch.row.start = Nanos{start * 1000};
    sketch.row.duration = Nanos{duration * 1000};
    sketch.Add(++id, kind, Place::kHost, -1, name);
  };
  add("c10d::send", NodeKind::kOperator, 0, 10);
  add("gloo:send", NodeKind::kSend, 5, 195);  // 2
  add("c10d::recv_", NodeKind::kOperator, 20, 10);
  add("gloo:recv", NodeKind::kRecv, 25, 180);  // 4
  add("aten::mm", NodeKind::kOperator, 40, 100);
  add("aten::add", NodeKind::kOperator, 210, 10);  // 6
  EXPECT_EQ(DepsOf(Convert(sketch.Finish()).trace, DepKind::kSync), (EdgeSet{{6, 2}, {6, 4}}));
}

// Gloo's thread wakes the waiting one 50 us before its own label ends; another one ends too late.
TEST(ToChakra, WhoIsWokenByGlooWaitsForItsLabel) {
  Sketch sketch(TraceFormat::kNative);
  uint64_t id = 0;
  const auto add = [&](const char* name, const char* thread, int64_t start, int64_t duration) {
    sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern(thread)});
    sketch.row.start = Nanos{start * 1000};
    sketch.row.duration = Nanos{duration * 1000};
    sketch.Add(++id, NodeKind::kOperator, Place::kHost, -1, name);
  };
  add("c10d::allreduce_", "main", 0, 100);
  add("gloo:all_reduce", "gloo 1", 50, 20'050);
  add("gloo:barrier", "gloo 2", 60, 22'000);
  add("aten::mul", "main", 20'050, 10);
  EXPECT_EQ(DepsOf(Convert(sketch.Finish()).trace, DepKind::kSync), (EdgeSet{{4, 2}}));
}

TEST(ToChakra, AddsNothingTwice) {
  const ToChakraResult once = Convert(TwoThreads());
  Sketch sketch;
  const ToChakraResult twice = Convert(once.trace);
  EXPECT_EQ(twice.order_edges + twice.stream_edges + twice.launch_edges, 0u);
  EXPECT_EQ(DepsOf(twice.trace, DepKind::kData), DepsOf(once.trace, DepKind::kData));
}

TEST(ToChakra, FindsDurationsWithoutChildren) {
  Sketch sketch;
  sketch.row.start = Nanos{0};
  sketch.row.duration = Nanos{100};
  sketch.Add(1, NodeKind::kOperator, Place::kHost);
  sketch.row.start = Nanos{20};
  sketch.row.duration = Nanos{30};
  sketch.Add(2, NodeKind::kOperator, Place::kHost, 1);
  sketch.Add(3, NodeKind::kOperator, Place::kHost, 1);
  const ToChakraResult result = Convert(sketch.Finish());
  EXPECT_EQ(result.trace.exclusive(NodeId(0)), Nanos{70});
  EXPECT_EQ(result.trace.exclusive(NodeId(1)), Nanos{30});
  EXPECT_EQ(result.trace.exclusive(NodeId(2)), std::nullopt) << "unknown stays unknown";
}

TEST(ToChakra, ACommunicationIsOneNode) {
  Sketch sketch;
  const NodeId recorded = sketch.Add(1, NodeKind::kCollective, Place::kHost);
  sketch.builder.SetComm(recorded, {.type = CollectiveType::kAllReduce});
  sketch.Add(2, NodeKind::kLabel, Place::kHost, 1);
  sketch.row.lane = sketch.Stream(20);
  sketch.Add(3, NodeKind::kCollective, Place::kDevice, 2);
  sketch.Add(4, NodeKind::kCollective, Place::kHost);  // on the host alone
  const ToChakraResult result = Convert(sketch.Finish());
  EXPECT_EQ(result.retyped, 1u);
  EXPECT_EQ(result.trace.kind(recorded), NodeKind::kOperator);
  EXPECT_NE(result.trace.comm(recorded), nullptr) << "its facts stay";
  EXPECT_EQ(result.trace.kind(NodeId(2)), NodeKind::kCollective);
  EXPECT_EQ(result.trace.kind(NodeId(3)), NodeKind::kCollective);
}

Trace Cyclic() {
  Sketch sketch;
  const NodeId a = sketch.Add(1, NodeKind::kOperator, Place::kHost);
  const NodeId b = sketch.Add(2, NodeKind::kOperator, Place::kHost);
  const NodeId c = sketch.Add(3, NodeKind::kOperator, Place::kHost);
  sketch.builder.AddDep(b, a, DepKind::kData);
  sketch.builder.AddDep(a, b, DepKind::kSync);
  sketch.builder.AddDep(c, c, DepKind::kData);
  return sketch.Finish();
}

TEST(ToChakra, RefusesCyclesAndSaysWhich) {
  const auto result = ToChakra(Cyclic(), {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
  EXPECT_NE(result.error().message.find("1 'n1' waits for 2 'n2' waits for 1"), std::string::npos)
      << result.error().message;
}

TEST(ToChakra, BreaksCyclesIfAsked) {
  const ToChakraResult result = Convert(Cyclic(), /*break_cycles=*/true);
  EXPECT_EQ(result.broken_edges, 2u);
  EXPECT_EQ(DepsOf(result.trace, DepKind::kData), (EdgeSet{{2, 1}}));
  EXPECT_EQ(DepsOf(result.trace, DepKind::kSync), EdgeSet{});
}

TEST(ToChakra, GivesWayToWhatTheTraceSays) {
  Sketch sketch;
  sketch.Add(1, NodeKind::kThread, Place::kHost);
  const NodeId first = sketch.Add(2, NodeKind::kOperator, Place::kHost, 1);
  sketch.Add(3, NodeKind::kOperator, Place::kHost, 1);
  sketch.builder.AddDep(first, uint64_t{3}, DepKind::kData);  // the first waits for the second
  const ToChakraResult result = Convert(sketch.Finish());
  EXPECT_EQ(result.contradictions, 1u);
  EXPECT_TRUE(DepsOf(result.trace, DepKind::kData).contains({2, 3}));
  EXPECT_FALSE(DepsOf(result.trace, DepKind::kData).contains({3, 2}));
}

TEST(ToChakra, LeavesTheDependenciesOfChakraTracesAlone) {
  Sketch sketch(TraceFormat::kChakra);
  sketch.Add(1, NodeKind::kThread, Place::kHost);
  sketch.Add(2, NodeKind::kOperator, Place::kHost, 1);
  const ToChakraResult result = Convert(sketch.Finish());
  EXPECT_EQ(result.trace.dep_count(), 0u);
}

TEST(ToChakra, RefusesADeviceTraceAlone) {
  Sketch sketch(TraceFormat::kKineto);
  sketch.Add(1, NodeKind::kOperator, Place::kHost);
  const auto result = ToChakra(sketch.Finish(), {});
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("etude link"), std::string::npos);
}

TEST(ToChakra, NumbersNodesWhoseIdsAreNotUnique) {
  Sketch sketch;
  sketch.Add(5, NodeKind::kOperator, Place::kHost);
  sketch.Add(5, NodeKind::kOperator, Place::kHost, 5);
  sketch.Add(6, NodeKind::kOperator, Place::kHost, 1);  // dangling: 1 must not become a node's id
  const ToChakraResult result = Convert(sketch.Finish());
  EXPECT_TRUE(result.renumbered);
  EXPECT_EQ(CarriedStats(result.trace)[Stat::kRenumberedId], 1u);
  EXPECT_EQ(result.trace.parent(NodeId(1)), NodeId(0));
  EXPECT_FALSE(result.trace.parent(NodeId(2)));
  EXPECT_EQ(result.trace.dangling().size(), 1u);
}

}  // namespace
}  // namespace etude
