#include "src/transform/astra_sim/for_astra_sim.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/trace/simulated.h"
#include "src/trace/trace_builder.h"
#include "src/transform/to_chakra.h"

namespace etude {
namespace {

// One rank's hand-written trace.
class AstraSketch {
 public:
  explicit AstraSketch(int64_t rank = 0, int64_t world = 1) {
    builder.info().SetFormat(TraceFormat::kLinked);
    builder.info().rank = rank;
    builder.info().world_size = world;
  }

  NodeId Add(NodeKind kind, Place place, std::initializer_list<NodeId> deps = {}) {
    row.source_id = next++;
    row.kind = kind;
    row.place = place;
    if (!row.name) row.name = builder.Intern("n" + std::to_string(row.source_id));
    const NodeId node = builder.AddNode(row);
    for (const NodeId dep : deps) builder.AddDep(node, dep, DepKind::kData);
    row = NodeRow();
    return node;
  }
  NodeId Host(std::initializer_list<NodeId> deps = {}) {
    return Add(NodeKind::kOperator, Place::kHost, deps);
  }
  NodeId Kernel(int64_t micros, std::initializer_list<NodeId> deps = {}) {
    row.duration = Nanos{micros * 1000};
    return Add(NodeKind::kKernel, Place::kDevice, deps);
  }
  NodeId Collective(CollectiveType type, int64_t bytes, std::initializer_list<NodeId> deps = {},
                    std::string_view group = "", std::optional<int64_t> root = {}) {
    row.duration = Nanos{7000};
    const NodeId node = Add(NodeKind::kCollective, Place::kDevice, deps);
    Comm comm{.type = type, .bytes = Bytes{bytes}, .root = root};
    if (!group.empty()) comm.group = builder.Intern(group);
    builder.SetComm(node, comm);
    return node;
  }
  NodeId Message(NodeKind kind, int64_t peer, int64_t bytes,
                 std::initializer_list<NodeId> deps = {}) {
    const NodeId node = Add(kind, Place::kDevice, deps);
    Comm comm{.bytes = Bytes{bytes}};
    (kind == NodeKind::kSend ? comm.dst : comm.src) = peer;
    builder.SetComm(node, comm);
    return node;
  }
  void Group(std::string_view name, std::vector<int64_t> ranks) {
    builder.AddProcessGroup({.name = builder.Intern(name), .ranks = builder.InternInts(ranks)});
  }
  RunnableRank Rank(RunnableRankOptions options = {}) {
    const Trace trace = builder.Finish().value();
    auto rank = MakeRunnableRank(trace, options);
    EXPECT_TRUE(rank.has_value()) << rank.error().message;
    return *std::move(rank);
  }

  TraceBuilder builder;
  NodeRow row;
  uint64_t next = 0;
};

AstraJob Job(std::vector<RunnableRank> ranks, ForAstraSimOptions options = {},
             RunnableJobOptions job_options = {}) {
  auto runnable = MakeRunnableJob(std::move(ranks), job_options);
  EXPECT_TRUE(runnable.has_value()) << runnable.error().message;
  auto job = ForAstraSim(*std::move(runnable), options);
  EXPECT_TRUE(job.has_value()) << job.error().message;
  for (const Trace& trace : job->traces) {
    EXPECT_TRUE(trace.is_acyclic());
    EXPECT_TRUE(trace.dangling().empty());
  }
  return *std::move(job);
}

AstraJob JobOf(std::vector<AstraSketch>& sketches, ForAstraSimOptions options = {}) {
  std::vector<RunnableRank> ranks;
  for (AstraSketch& sketch : sketches) ranks.push_back(sketch.Rank());
  return Job(std::move(ranks), options);
}

std::vector<std::string> NamesIn(const Trace& trace) {
  std::vector<std::string> names;
  ForEachNode(trace, [&](NodeId node) { names.emplace_back(trace.name(node)); });
  return names;
}

std::vector<std::string> DepNames(const Trace& trace, std::string_view name) {
  std::vector<std::string> names;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.name(node) != name) return;
    for (const NodeId dep : trace.deps(node)) names.emplace_back(trace.name(dep));
  });
  return names;
}

const Comm& CommOf(const Trace& trace, size_t index) { return trace.comms()[index].second; }

TEST(RunnableRank, KeepsDeviceWorkAndTheOrderThatTheHostGaveIt) {
  AstraSketch sketch;
  const NodeId host0 = sketch.Host();
  const NodeId kernel1 = sketch.Kernel(5, {host0});
  const NodeId host2 = sketch.Host({host0});
  sketch.Kernel(5, {host2});                           // n3 may overlap with n1
  const NodeId waits = sketch.Host({host2, kernel1});  // the host waits for n1 …
  sketch.Kernel(5, {waits});                           // … and then launches n5
  const AstraJob job = Job({sketch.Rank()});
  EXPECT_EQ(NamesIn(job.traces[0]), (std::vector<std::string>{"n1", "n3", "n5"}));
  EXPECT_EQ(DepNames(job.traces[0], "n3"), std::vector<std::string>{});
  EXPECT_EQ(DepNames(job.traces[0], "n5"), std::vector<std::string>{"n1"});
  EXPECT_EQ(job.notes[RunnableNote::kHostWork], 3u);
  ForEachNode(job.traces[0], [&](NodeId node) {
    EXPECT_EQ(job.traces[0].place(node), Place::kDevice) << "is_cpu_op is false";
  });
}

// Rank `rank` of two that send to each other and receive in one kernel. The kernel waits for
// "before", "after" waits for it, and "beside" was launched after it.
AstraSketch BatchSketch(int64_t rank) {
  AstraSketch sketch(rank, 2);
  const LaneId thread = sketch.builder.InternLane({.thread = sketch.builder.Intern("1")});
  const auto on_thread = [&](std::string_view name, int64_t start) {
    sketch.row.name = sketch.builder.Intern(name);
    sketch.row.lane = thread;
    sketch.row.start = Nanos{start};
  };
  const auto kernel = [&](std::string_view name, std::initializer_list<NodeId> deps) {
    sketch.row.name = sketch.builder.Intern(name);
    return sketch.Kernel(5, deps);
  };
  const NodeId before = kernel("before", {});
  on_thread("send", 10);
  const NodeId send = sketch.Add(NodeKind::kSend, Place::kHost);
  sketch.builder.SetComm(send, {.bytes = Bytes{4000}, .dst = 1 - rank});
  on_thread("recv", 20);
  const NodeId recv = sketch.Add(NodeKind::kRecv, Place::kHost, {send});
  sketch.builder.SetComm(recv, {.bytes = Bytes{4000}, .src = 1 - rank});
  on_thread("nccl:coalesced", 30);
  const NodeId label = sketch.Add(NodeKind::kLabel, Place::kHost, {recv});
  sketch.row.name = sketch.builder.Intern("both");
  sketch.row.parent = label.value();
  const NodeId both = sketch.Add(NodeKind::kCollective, Place::kDevice, {label, before});
  sketch.builder.SetComm(both, Comm());
  kernel("after", {both});
  kernel("beside", {sketch.Host({label})});
  return sketch;
}

TEST(RunnableRank, CallsOfABatchRunWhereTheirKernelDid) {
  std::vector<AstraSketch> sketches;
  for (const int64_t rank : {0, 1}) sketches.push_back(BatchSketch(rank));
  const AstraJob job = JobOf(sketches);
  const Trace& trace = job.traces[0];
  using Names = std::vector<std::string>;
  EXPECT_EQ(DepNames(trace, "send"), Names{"before"});
  EXPECT_EQ(DepNames(trace, "recv"), Names{"before"}) << "not for the send";
  EXPECT_EQ(DepNames(trace, "after"), (Names{"send", "recv"}));
  EXPECT_EQ(DepNames(trace, "beside"), Names{}) << "calls do not wait";
  EXPECT_EQ(job.notes[RunnableNote::kReplayed], 0u) << "it is no collective of all ranks";
}

TEST(RunnableRank, WithoutDeviceWorkOwnTimesStay) {
  AstraSketch sketch;
  const LaneId main = sketch.builder.InternLane({.thread = sketch.builder.Intern("1")});
  const LaneId other = sketch.builder.InternLane({.thread = sketch.builder.Intern("2")});
  const auto add = [&](LaneId lane, int64_t start, int64_t duration,
                       std::initializer_list<NodeId> deps = {}) {
    sketch.row.lane = lane;
    sketch.row.start = Nanos{start * 1000};
    sketch.row.duration = Nanos{duration * 1000};
    return sketch.Add(NodeKind::kOperator, Place::kHost, deps);
  };
  add(main, 0, 100);  // n0: 100 - 20 - 10, and 40 of waiting for n2
  add(main, 10, 20);  // n1
  const NodeId n2 = add(other, 30, 40);
  const NodeId n3 = add(main, 80, 10);
  sketch.builder.AddDep(n3, n2, DepKind::kSync);
  const AstraJob job = Job({sketch.Rank()});
  std::map<std::string, int64_t> micros;
  const Trace& trace = job.traces[0];
  ForEachNode(trace, [&](NodeId node) {
    micros[std::string(trace.name(node))] = trace.duration(node)->count / 1000;
  });
  EXPECT_EQ(micros,
            (std::map<std::string, int64_t>{{"n0", 30}, {"n1", 20}, {"n2", 40}, {"n3", 10}}));
  EXPECT_EQ(DepNames(trace, "n3"), (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(DepNames(trace, "n2"), std::vector<std::string>{});
}

// Thread 7 begins first. Ranks of a job may number their threads differently.
TEST(ForAstraSim, HostThreadsStayIfAsked) {
  AstraSketch sketch;
  const auto add = [&](std::string_view thread, int64_t start, NodeKind kind) {
    sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern(thread)});
    sketch.row.start = Nanos{start * 1000};
    sketch.row.duration = Nanos{5000};
    return sketch.Add(kind, Place::kHost);
  };
  add("1", 10, NodeKind::kOperator);
  add("7", 0, NodeKind::kLabel);
  const NodeId comm = add("1", 20, NodeKind::kCollective);
  sketch.builder.SetComm(comm, {.type = CollectiveType::kAllReduce, .bytes = Bytes{64}});
  const RunnableRank rank = sketch.Rank();
  RunnableRank other = rank;
  other.rank = 1;
  const AstraJob job = Job({rank, other}, {.host_threads = true});
  const Trace& trace = job.traces[0];
  EXPECT_TRUE(HostComputes(trace));
  std::map<std::string, std::string> threads;
  ForEachNode(trace, [&](NodeId node) {
    EXPECT_EQ(trace.place(node), Place::kHost);
    const LaneId lane = trace.lane_id(node);
    threads[std::string(trace.name(node))] = lane ? trace.text(trace.lane(lane).thread) : "none";
  });
  EXPECT_EQ(threads,
            (std::map<std::string, std::string>{{"n0", "host 2"}, {"n1", "host"}, {"n2", "none"}}));
  EXPECT_FALSE(HostComputes(Job({rank, other}).traces[0]));
}

TEST(ForAstraSim, RoundingKeepsTheSumOfALane) {
  AstraSketch sketch;
  const LaneId lane = sketch.builder.InternLane({.device = 0, .stream = 7});
  for (int i = 0; i < 1000; ++i) {
    sketch.row.lane = lane;
    sketch.row.duration = Nanos{333};
    sketch.row.start = Nanos{i * 333};
    sketch.Add(NodeKind::kKernel, Place::kDevice);
  }
  const AstraJob job = Job({sketch.Rank()});
  int64_t sum = 0;
  ForEachNode(job.traces[0], [&](NodeId node) {
    sum += job.traces[0].duration(node)->count;
    EXPECT_EQ(job.traces[0].duration(node)->count % 1000, 0);
  });
  EXPECT_EQ(sum, 333000);
}

TEST(ForAstraSim, CollectivesAsAstraSimKnowsThem) {
  std::vector<AstraSketch> sketches;
  for (int64_t rank = 0; rank < 2; ++rank) {
    AstraSketch& sketch = sketches.emplace_back(rank, 2);
    sketch.Group("0", {0, 1});
    sketch.Group("alone", {rank});
    sketch.Collective(CollectiveType::kAllReduce, 4096, {}, "0");
    sketch.Collective(CollectiveType::kBarrier, 0, {}, "0");
    sketch.Collective(CollectiveType::kReduce, 4096, {}, "0");
    sketch.Collective(CollectiveType::kAllGather, 8, {}, "0");
    sketch.Collective(CollectiveType::kAllToAll, rank == 0 ? 100 : 0, {}, "0");
    sketch.Collective(CollectiveType::kAllReduce, 0, {}, "0");
    sketch.Collective(CollectiveType::kAllReduce, 64, {}, "alone");
  }
  const AstraJob job = JobOf(sketches);
  for (const Trace& trace : job.traces) {
    ASSERT_EQ(trace.comms().size(), 5u);
    EXPECT_EQ(CommOf(trace, 0).type, CollectiveType::kAllReduce);
    EXPECT_EQ(CommOf(trace, 0).bytes, Bytes{4096});
    EXPECT_FALSE(CommOf(trace, 0).group) << "all ranks: no pg_name";
    EXPECT_EQ(CommOf(trace, 1).type, CollectiveType::kAllReduce) << "a barrier";
    EXPECT_EQ(CommOf(trace, 1).bytes, Bytes{4});
    EXPECT_EQ(CommOf(trace, 2).type, CollectiveType::kBroadcast) << "takes its recorded time";
    EXPECT_EQ(CommOf(trace, 3).bytes, Bytes{1024});
    EXPECT_EQ(CommOf(trace, 4).bytes, Bytes{100}) << "the same on both sides";
  }
  EXPECT_EQ(job.notes[RunnableNote::kBarrier], 2u);
  EXPECT_EQ(job.notes[RunnableNote::kReplayed], 2u);
  EXPECT_EQ(job.notes[RunnableNote::kSmallGather], 2u);
  EXPECT_EQ(job.notes[RunnableNote::kSizeRaised], 1u);
  EXPECT_EQ(job.notes[RunnableNote::kNoSize], 2u);
  EXPECT_EQ(job.notes[RunnableNote::kOneRank], 2u);
}

TEST(ForAstraSim, GroupsAreTheSameOnAllRanks) {
  std::vector<AstraSketch> sketches;
  for (int64_t rank = 0; rank < 4; ++rank) {
    AstraSketch& sketch = sketches.emplace_back(rank, 4);
    const std::string name = rank < 2 ? "low" : "high";
    sketch.Group(name, rank < 2 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{2, 3});
    sketch.Group("1", rank % 2 == 0 ? std::vector<int64_t>{0, 2} : std::vector<int64_t>{1, 3});
    sketch.Collective(CollectiveType::kAllReduce, 64, {}, name);
    sketch.Collective(CollectiveType::kAllReduce, 64, {}, "1");
  }
  const AstraJob job = JobOf(sketches);
  EXPECT_EQ(job.groups,
            (std::map<int64_t, std::vector<int64_t>>{
                {1, {0, 2}}, {2, {1, 3}}, {3, {2, 3}}, {4, {0, 1}}, {5, {0, 1, 2, 3}}}));
  EXPECT_EQ(job.notes[RunnableNote::kRenamedGroup], 3u);
  const Trace& last = job.traces[3];
  EXPECT_EQ(last.text(CommOf(last, 0).group), "3");
  EXPECT_EQ(last.text(CommOf(last, 1).group), "2");
}

// Etude's own simulator runs them.
TEST(ForAstraSim, WhatAstraSimReplaysHasItsGroupAndOneSize) {
  std::vector<AstraSketch> sketches;
  for (int64_t rank = 0; rank < 4; ++rank) {
    AstraSketch& sketch = sketches.emplace_back(rank, 4);
    const std::string name = rank < 2 ? "1" : "2";
    sketch.Group(name, rank < 2 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{2, 3});
    sketch.Collective(CollectiveType::kBroadcast, 64, {}, name);
    sketch.Collective(CollectiveType::kScatter, rank % 2 == 0 ? 16 : 0, {}, name);
  }
  const AstraJob job = JobOf(sketches);
  EXPECT_EQ(job.notes[RunnableNote::kReplayed], 8u);
  for (const Trace& trace : job.traces) {
    const std::string_view group = *trace.info().rank < 2 ? "1" : "2";
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(trace.text(CommOf(trace, i).group), group);
    EXPECT_EQ(CommOf(trace, 1).bytes, Bytes{16});
  }
}

TEST(ForAstraSim, WithAllTypesCollectivesStayWhatTheyAre) {
  constexpr std::array kTypes = {CollectiveType::kBroadcast, CollectiveType::kReduce,
                                 CollectiveType::kGather,    CollectiveType::kScatter,
                                 CollectiveType::kAllGather, CollectiveType::kUnknown};
  std::vector<AstraSketch> sketches;
  for (int64_t rank = 0; rank < 2; ++rank) {
    AstraSketch& sketch = sketches.emplace_back(rank, 2);
    for (const CollectiveType type : kTypes) sketch.Collective(type, 64);
    const auto told_by_one = rank == 0 ? std::nullopt : std::optional<int64_t>(1);
    sketch.Collective(CollectiveType::kReduce, 64, {}, "", told_by_one);
    sketch.Collective(CollectiveType::kBroadcast, 64, {}, "", 2);  // not among the ranks
  }
  const AstraJob job = JobOf(sketches, {.all_types = true});
  EXPECT_EQ(job.notes[RunnableNote::kReplayed], 0u);
  EXPECT_EQ(job.notes[RunnableNote::kUnknownType], 2u);
  EXPECT_EQ(job.notes[RunnableNote::kUnknownRoot], 10u);
  EXPECT_EQ(job.notes[RunnableNote::kSmallGather], 0u);
  for (const Trace& trace : job.traces) {
    for (size_t i = 0; i < kTypes.size(); ++i) {
      EXPECT_EQ(CommOf(trace, i).type, kTypes[i]);
      EXPECT_EQ(CommOf(trace, i).bytes, Bytes{64});
      EXPECT_FALSE(CommOf(trace, i).root);
    }
    EXPECT_EQ(CommOf(trace, 6).root, 1);
    EXPECT_FALSE(CommOf(trace, 7).root);
  }
}

TEST(ForAstraSim, RanksThatDisagreeReplayFromThereOn) {
  std::vector<AstraSketch> sketches;
  for (int64_t rank = 0; rank < 2; ++rank) {
    AstraSketch& sketch = sketches.emplace_back(rank, 2);
    const NodeId first = sketch.Collective(CollectiveType::kAllReduce, 64);
    sketch.Collective(rank == 0 ? CollectiveType::kAllReduce : CollectiveType::kAllGather, 2048,
                      {first});
  }
  const AstraJob job = JobOf(sketches);
  EXPECT_EQ(job.notes[RunnableNote::kInconsistent], 2u);
  for (const Trace& trace : job.traces) {
    EXPECT_EQ(CommOf(trace, 0).type, CollectiveType::kAllReduce);
    EXPECT_EQ(CommOf(trace, 1).type, CollectiveType::kBroadcast);
  }
  ASSERT_EQ(job.messages.size(), 1u);
  EXPECT_EQ(job.messages[0],
            "group of all ranks: collective 2 is all_reduce on rank 0, all_gather on rank 1");
}

// The trace has the call that began a Gloo label on another thread.
TEST(ForAstraSim, LabelsOfGlooWaitForTheirCall) {
  for (const bool is_callee : {false, true}) {
    AstraSketch sketch;
    const auto add = [&](const char* name, const char* thread, NodeKind kind, int64_t start) {
      sketch.row.name = sketch.builder.Intern(name);
      sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern(thread)});
      sketch.row.start = Nanos{start};
      sketch.row.duration = Nanos{1000};
      return sketch.Add(kind, Place::kHost);
    };
    add("aten::mm", "main", NodeKind::kOperator, 0);
    const NodeId call = add("c10d::allreduce_", "main", NodeKind::kOperator, 2000);
    const NodeId label = add("gloo:all_reduce", "gloo", NodeKind::kCollective, 2500);
    sketch.builder.SetComm(label, {.type = CollectiveType::kAllReduce, .bytes = Bytes{64}});
    if (is_callee) {
      sketch.builder.SetParent(label, call);
    } else {
      sketch.builder.AddDep(label, call, DepKind::kControl);
    }
    const RunnableRank rank = sketch.Rank();
    ASSERT_EQ(rank.nodes.size(), 3u);
    ASSERT_EQ(rank.nodes[2].kind, NodeKind::kCollective);
    EXPECT_EQ(std::vector(rank.DepsOf(2).begin(), rank.DepsOf(2).end()), std::vector<uint32_t>{1});
  }
}

// Gloo has several threads: work that was asked for later may begin, and end, earlier on one rank.
TEST(ForAstraSim, CollectivesMeetInTheOrderOfTheirCalls) {
  std::vector<AstraSketch> sketches;
  for (int64_t rank = 0; rank < 2; ++rank) {
    AstraSketch& sketch = sketches.emplace_back(rank, 2);
    const auto add = [&](const char* name, const char* thread, NodeKind kind, int64_t start) {
      sketch.row.name = sketch.builder.Intern(name);
      sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern(thread)});
      sketch.row.start = Nanos{start};
      sketch.row.duration = Nanos{100};
      return sketch.Add(kind, Place::kHost);
    };
    const auto label = [&](NodeId call, const char* thread, int64_t start, int64_t bytes) {
      const NodeId node = add("gloo:all_reduce", thread, NodeKind::kCollective, start);
      sketch.builder.SetComm(node, {.type = CollectiveType::kAllReduce, .bytes = Bytes{bytes}});
      sketch.builder.SetParent(node, call);
    };
    const NodeId first = add("c10d::allreduce_", "main", NodeKind::kOperator, 0);
    const NodeId second = add("c10d::allreduce_", "main", NodeKind::kOperator, 2000);
    if (rank == 0) label(first, "gloo 1", 500, 64);
    label(second, "gloo 2", 2500, 4096);
    if (rank == 1) label(first, "gloo 1", 4000, 64);
  }
  const AstraJob job = JobOf(sketches);
  EXPECT_EQ(job.notes[RunnableNote::kSizeRaised], 0u);
  for (const Trace& trace : job.traces) {
    ASSERT_EQ(trace.comms().size(), 2u);
    const NodeId small = trace.comms()[0].first;
    const NodeId large = trace.comms()[1].first;
    EXPECT_EQ(CommOf(trace, 0).bytes, Bytes{64});
    EXPECT_EQ(CommOf(trace, 1).bytes, Bytes{4096});
    EXPECT_LE(*trace.start(small), *trace.start(large));
    EXPECT_EQ(std::ranges::count(trace.deps(large), small), 1);
  }
}

// A program's own work between its calls may overlap communications that these began.
TEST(ForAstraSim, TimeInALabelStaysWhereItWas) {
  AstraSketch sketch;
  const auto add = [&](const char* name, const char* thread, NodeKind kind, int64_t start,
                       int64_t end) {
    sketch.row.name = sketch.builder.Intern(name);
    sketch.row.lane = sketch.builder.InternLane({.thread = sketch.builder.Intern(thread)});
    sketch.row.start = Nanos{start};
    sketch.row.duration = Nanos{end - start};
    return sketch.Add(kind, Place::kHost);
  };
  add("step", "main", NodeKind::kLabel, 0, 10'000);
  const NodeId call = add("c10d::allreduce_", "main", NodeKind::kOperator, 1000, 2000);
  const NodeId label = add("gloo:all_reduce", "gloo", NodeKind::kCollective, 1500, 7000);
  sketch.builder.SetComm(label, {.type = CollectiveType::kAllReduce, .bytes = Bytes{64}});
  sketch.builder.AddDep(label, call, DepKind::kControl);
  add("last", "main", NodeKind::kOperator, 8000, 9000);
  const RunnableRank rank = sketch.Rank();
  std::vector<std::string> found;
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    std::string text = rank.names[rank.nodes[i].name] + " " +
                       std::to_string(rank.nodes[i].duration.value_or(Nanos{}).count) + " after";
    for (const uint32_t dep : rank.DepsOf(i)) text += " " + std::to_string(dep);
    found.push_back(text);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"step 1000 after", "c10d::allreduce_ 500 after 0",
                                             "gloo:all_reduce 5500 after 1", "in step 6000 after 1",
                                             "last 1000 after 3", "in step 1000 after 4"}));
}

TEST(ForAstraSim, MessagesMeetTheirOtherSide) {
  std::vector<AstraSketch> sketches;
  AstraSketch& zero = sketches.emplace_back(0, 2);
  zero.Message(NodeKind::kSend, 1, 100);
  zero.Message(NodeKind::kSend, 1, 50);
  zero.Message(NodeKind::kSend, 0, 50);  // to itself
  AstraSketch& one = sketches.emplace_back(1, 2);
  one.Message(NodeKind::kRecv, 0, 120);
  const AstraJob job = JobOf(sketches);
  ASSERT_EQ(job.traces[0].comms().size(), 1u);
  EXPECT_EQ(CommOf(job.traces[0], 0).bytes, Bytes{120}) << "sizes must be equal to match";
  EXPECT_EQ(CommOf(job.traces[0], 0).dst, 1);
  EXPECT_EQ(CommOf(job.traces[0], 0).tag, 0);
  EXPECT_EQ(CommOf(job.traces[1], 0).src, 0);
  EXPECT_EQ(job.notes[RunnableNote::kUnmatched], 1u);
  EXPECT_EQ(job.notes[RunnableNote::kNoPeer], 1u);
}

// Rank 0 is ready for A first, rank 1 for B: communicating once at a time, they would deadlock. The
// output must have one order for both.
TEST(ForAstraSim, OneOrderOfCommunicationForAllRanks) {
  std::vector<AstraSketch> sketches;
  for (int64_t rank = 0; rank < 3; ++rank) {
    AstraSketch& sketch = sketches.emplace_back(rank, 3);
    sketch.Group("1", {0, 1, 2});
    sketch.Group("2", {0, 1});
    const auto add = [&](std::string_view name, std::string_view group) {
      sketch.row.name = sketch.builder.Intern(name);
      sketch.Collective(CollectiveType::kAllReduce, 64, {}, group);
    };
    if (rank == 1) add("B", "2");
    add("A", "1");
    if (rank == 0) add("B", "2");
  }
  const AstraJob job = JobOf(sketches);
  EXPECT_EQ(job.notes[RunnableNote::kCircular], 0u);
  const bool a_first = DepNames(job.traces[0], "B") == std::vector<std::string>{"A"};
  const auto after = a_first ? "B" : "A";
  const auto before = std::vector<std::string>{a_first ? "A" : "B"};
  EXPECT_EQ(DepNames(job.traces[0], after), before);
  EXPECT_EQ(DepNames(job.traces[1], after), before);
}

TEST(ForAstraSim, WhatWaitsForItselfIsReplayed) {
  std::vector<AstraSketch> sketches;
  for (int64_t rank = 0; rank < 2; ++rank) {
    AstraSketch& sketch = sketches.emplace_back(rank, 3);
    sketch.Group("1", {0, 1});
    sketch.Group("2", {1, 0});
    const std::string order = rank == 0 ? "12" : "21";
    const NodeId first = sketch.Collective(CollectiveType::kAllReduce, 64, {}, order.substr(0, 1));
    sketch.Collective(CollectiveType::kAllReduce, 64, {first}, order.substr(1, 1));
  }
  const AstraJob job = JobOf(sketches);
  EXPECT_EQ(job.notes[RunnableNote::kCircular], 2u);
  EXPECT_EQ(job.missing, std::vector<int64_t>{2});
  EXPECT_EQ(job.messages.size(), 1u);
}

TEST(ForAstraSim, MissingRanksAreNamedOrFilledIn) {
  const auto ranks = [] {
    std::vector<RunnableRank> made;
    for (const int64_t rank : {1, 2}) {
      AstraSketch sketch(rank, 5);
      sketch.Collective(CollectiveType::kAllReduce, 64 * rank);
      made.push_back(sketch.Rank());
    }
    return made;
  };
  EXPECT_EQ(Job(ranks()).missing, (std::vector<int64_t>{0, 3, 4}));
  const AstraJob filled = Job(ranks(), {}, {.fill_ranks = true});
  ASSERT_EQ(filled.ranks.size(), 5u);
  EXPECT_EQ(filled.ranks[0].copy_of, 1);
  EXPECT_EQ(filled.ranks[4].copy_of, 2);
  AstraSketch sketch(0, 2);
  sketch.Message(NodeKind::kSend, 1, 8);
  std::vector<RunnableRank> one;
  one.push_back(sketch.Rank());
  EXPECT_FALSE(MakeRunnableJob(std::move(one), {.fill_ranks = true}).has_value());
}

TEST(ForAstraSim, OneRankForAllIsTheOneOfFilledRanks) {
  const auto ranks = [] {
    std::vector<RunnableRank> made;
    AstraSketch sketch(0, 4);
    const NodeId first = sketch.Collective(CollectiveType::kAllReduce, 64);
    sketch.Collective(CollectiveType::kBarrier, 0, {first});
    made.push_back(sketch.Rank());
    return made;
  };
  const AstraJob filled = Job(ranks(), {}, {.fill_ranks = true});
  const AstraJob one = Job(ranks(), {}, {.fill_ranks = true, .one_for_all = true});
  ASSERT_EQ(filled.ranks.size(), 4u);
  ASSERT_EQ(one.ranks.size(), 1u);
  EXPECT_TRUE(one.missing.empty());
  EXPECT_EQ(one.world_size, 4);
  EXPECT_TRUE(one.traces[0].SameContent(filled.traces[0]));
  AstraSketch sketch(0, 2);
  sketch.Message(NodeKind::kSend, 1, 8);
  std::vector<RunnableRank> sends;
  sends.push_back(sketch.Rank());
  EXPECT_FALSE(MakeRunnableJob(std::move(sends), {.fill_ranks = true, .one_for_all = true}));
  AstraSketch grouped(0, 2);
  grouped.Group("own", {0});
  grouped.Collective(CollectiveType::kAllReduce, 64, {}, "own");
  std::vector<RunnableRank> alone;
  alone.push_back(grouped.Rank());
  const auto refused = MakeRunnableJob(std::move(alone), {.fill_ranks = true, .one_for_all = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "cannot fill in ranks: rank 0 is in a group of 1 rank that excludes other ranks");
}

// Limits of ASTRA-sim do not affect the runnable job.
TEST(MakeRunnableJob, KeepsRootsBarriersAndSmallSizesWhichForAstraSimChanges) {
  std::vector<RunnableRank> ranks;
  for (const int64_t rank : {0, 1}) {
    AstraSketch sketch(rank, 2);
    const NodeId first = sketch.Collective(CollectiveType::kBroadcast, 64, {}, "", 1);
    const NodeId second = sketch.Collective(CollectiveType::kBarrier, 0, {first});
    sketch.Collective(CollectiveType::kAllGather, rank == 0 ? 8 : 16, {second});
    ranks.push_back(sketch.Rank());
  }
  const auto job = MakeRunnableJob(ranks, {});
  ASSERT_TRUE(job) << job.error().message;
  for (const std::vector<RunnablePlan>& plans : job->plans) {
    ASSERT_EQ(plans.size(), 3u);
    for (const RunnablePlan& plan : plans) EXPECT_EQ(plan.what, RunnablePlan::What::kRuns);
    EXPECT_EQ(plans[0].root, 1);
    EXPECT_EQ(plans[1].size, 0);
    EXPECT_EQ(plans[2].size, 16);
    EXPECT_EQ(plans[2].match, job->plans[0][2].match);
  }
  EXPECT_TRUE(job->plans[0][2].raised);
  const AstraJob made = Job(std::move(ranks));
  EXPECT_EQ(made.notes[RunnableNote::kReplayed], 2u);
  EXPECT_EQ(made.notes[RunnableNote::kBarrier], 2u);
  EXPECT_EQ(made.notes[RunnableNote::kSizeRaised], 1u);
  EXPECT_EQ(made.notes[RunnableNote::kSmallGather], 2u);
}

TEST(ForAstraSim, FlopsOfAnOperatorAreSharedByItsKernels) {
  AstraSketch sketch;
  TraceBuilder& builder = sketch.builder;
  const auto tensor = [&](std::vector<int64_t> shape) {
    const int64_t numel = shape[0] * shape[1];
    return Value::Tensor(builder.Intern("Tensor(float)"),
                         builder.InternTensor({.tensor = builder.node_count() + 1,
                                               .storage = 1,
                                               .numel = numel,
                                               .element_bytes = 4,
                                               .shape = builder.InternInts(shape)}));
  };
  const std::vector<Value> in = {tensor({64, 128}), tensor({128, 32})};
  const std::vector<Value> out = {tensor({64, 32})};
  sketch.row.name = builder.Intern("aten::mm");
  sketch.row.inputs = builder.InternValues(in);
  sketch.row.outputs = builder.InternValues(out);
  sketch.Add(NodeKind::kOperator, Place::kHost);
  for (const int64_t micros : {3, 1}) {
    sketch.row.parent = 0;
    sketch.Kernel(micros);
  }
  sketch.Kernel(2);  // of nobody
  std::vector<RunnableRank> ranks;
  ranks.push_back(sketch.Rank({.compute = RunnableCompute::kFlops}));
  const std::vector<RunnableNode> nodes = ranks[0].nodes;
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].ops + nodes[1].ops, 2u * 64 * 128 * 32);
  EXPECT_EQ(nodes[0].bytes + nodes[1].bytes, 4u * (64 * 128 + 128 * 32 + 64 * 32));
  EXPECT_NEAR(static_cast<double>(nodes[0].ops), 0.75 * 2 * 64 * 128 * 32, 200);
  EXPECT_EQ(nodes[2].ops, 1u);
  const AstraJob job = Job(std::move(ranks), {.compute = RunnableCompute::kFlops});
  EXPECT_EQ(job.notes[RunnableNote::kNoShapes], 1u);
  EXPECT_EQ(job.notes[RunnableNote::kFirstRaised], 3u);
}

// Simulates ASTRA-sim's execution without times: a rank communicates once at a time, the lowest
// ready number first. Returns false if a rank hangs.
bool Finishes(const AstraJob& job) {
  struct State {
    std::vector<bool> begun, done;
    bool busy = false;
  };
  std::vector<State> states;
  for (const Trace& trace : job.traces) {
    states.push_back(
        {std::vector<bool>(trace.node_count()), std::vector<bool>(trace.node_count())});
  }
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> messages;  // by ends and tag
  // By group and number in it: the ranks that have joined.
  std::map<std::pair<std::string, int64_t>, std::vector<std::pair<size_t, NodeId>>> meetings;
  std::map<std::pair<size_t, std::string>, int64_t> met;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < job.traces.size(); ++rank) {
      const Trace& trace = job.traces[rank];
      State& state = states[rank];
      ForEachNode(trace, [&](NodeId node) {
        const auto finished = [&](NodeId dep) { return state.done[dep.index()]; };
        if (state.begun[node.index()] || !std::ranges::all_of(trace.deps(node), finished)) return;
        const Comm* comm = trace.comm(node);
        if (comm == nullptr || comm->type == CollectiveType::kBroadcast) {
          if (comm != nullptr && state.busy) return;
        } else if (comm->type != CollectiveType::kUnknown) {
          if (state.busy) return;
          const std::string group(trace.text(comm->group));
          // Collectives of all ranks are numbered together with those of groups.
          const int64_t number = met[{rank, group}]++;
          if (!group.empty()) ++met[{rank, ""}];
          auto& there = meetings[{group, number}];
          there.emplace_back(rank, node);
          state.begun[node.index()] = state.busy = moved = true;
          const size_t size =
              group.empty() ? job.traces.size() : job.groups.at(std::stoll(group)).size();
          if (there.size() < size) return;
          for (const auto& [other, its] : there) {
            const Comm& side = *job.traces[other].comm(its);
            if (side.type != comm->type || side.bytes != comm->bytes) return;
            states[other].done[its.index()] = true;
            states[other].busy = false;
          }
          return;
        } else if (trace.kind(node) == NodeKind::kSend) {
          if (state.busy) return;
          ++messages[{*comm->src, *comm->dst, *comm->tag}];
        } else if (messages[{*comm->src, *comm->dst, *comm->tag}]-- == 0) {
          ++messages[{*comm->src, *comm->dst, *comm->tag}];
          return;
        }
        state.begun[node.index()] = state.done[node.index()] = moved = true;
      });
    }
  }
  return std::ranges::all_of(states, [](const State& state) {
    return std::ranges::all_of(state.done, [](bool done) { return done; });
  });
}

// Any combination of ranks gives a job that ends.
TEST(ForAstraSim, EveryJobFinishes) {
  const bool holds = rc::check("finishes", [] {
    const auto world = *rc::gen::inRange<int64_t>(1, 5);
    std::vector<AstraSketch> sketches;
    for (int64_t rank = 0; rank < world; ++rank) {
      AstraSketch& sketch = sketches.emplace_back(rank, world);
      std::vector<int64_t> all;
      for (int64_t member = world; member-- > 0;) all.push_back(member);
      sketch.Group("all", all);
      sketch.Group("half", rank < world / 2
                               ? std::vector<int64_t>(all.begin() + (world + 1) / 2, all.end())
                               : std::vector<int64_t>(all.begin(), all.begin() + (world + 1) / 2));
      std::vector<NodeId> nodes;
      const auto count = *rc::gen::inRange(0, 12);
      for (int i = 0; i < count; ++i) {
        const auto kind = *rc::gen::inRange(0, 8);
        const auto peer = *rc::gen::inRange<int64_t>(0, world);
        const auto bytes = *rc::gen::inRange<int64_t>(0, 3) * 512;
        const NodeId node =
            kind == 0   ? sketch.Host()
            : kind == 1 ? sketch.Kernel(1)
            : kind == 2 ? sketch.Message(NodeKind::kSend, peer, bytes)
            : kind == 3 ? sketch.Message(NodeKind::kRecv, peer, bytes)
            : kind == 4 ? sketch.Collective(CollectiveType::kAllGather, bytes, {}, "all")
            : kind == 5 ? sketch.Collective(CollectiveType::kReduce, bytes, {}, "half")
                        : sketch.Collective(CollectiveType::kAllReduce, bytes, {},
                                            kind == 6 ? "all" : "half");
        for (int k = 0; k < 2 && !nodes.empty(); ++k) {
          const auto dep = *rc::gen::inRange<size_t>(0, nodes.size() * 2);
          if (dep < nodes.size()) sketch.builder.AddDep(node, nodes[dep], DepKind::kData);
        }
        nodes.push_back(node);
      }
    }
    const AstraJob job = JobOf(sketches);
    RC_ASSERT(job.missing.empty());
    RC_ASSERT(Finishes(job));
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace etude
