#include "src/transform/link/link.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/formats/kineto/kineto_reader.h"
#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/run/calls/launch.h"
#include "src/trace/carried_stats.h"
#include "src/trace/other_process.h"
#include "src/trace/validator.h"

namespace etude {
namespace {

Result<Trace> ReadWith(std::unique_ptr<TraceReader> reader, const std::string& text) {
  ETUDE_RETURN_IF_ERROR(reader->Push(text));
  return reader->Finish(false);
}
Trace ReadHost(const std::string& text) {
  const RunContext context;
  auto trace = ReadWith(MakeEtJsonReader("host", {.strict = true}, context), text);
  EXPECT_TRUE(trace.has_value()) << trace.error().message;
  return *std::move(trace);
}
Trace ReadDevice(const std::string& text) {
  const RunContext context;
  auto trace = ReadWith(MakeKinetoReader("device", {.strict = true}, context), text);
  EXPECT_TRUE(trace.has_value()) << trace.error().message;
  return *std::move(trace);
}

std::string Micros(int64_t nanos) {
  std::string rest = std::to_string(nanos % 1000 + 1000).substr(1);
  return std::to_string(nanos / 1000) + "." + rest;
}

// Writes a host and a device trace of the same synthetic run.
class MadeUpRun {
 public:
  bool rf_ids = true;  // in the device trace
  bool host_rf_ids = true;
  bool external_ids = true;  // those of PyTorch since 2.1; else the correlation, as before
  std::string host_facts;    // of the host trace, each followed by a comma

  // Ids of host nodes: roots have 1 and the threads' numbers + 1.
  uint64_t AddOp(uint64_t parent, int tid, const std::string& name, int64_t start, int64_t duration,
                 const std::string& attrs = "") {
    const uint64_t id = next_id_++;
    AddHostNode(id, parent, tid, name, host_rf_ids ? id : 0, attrs);
    AddEvent("cpu_op", name, tid, start, duration,
             ExternalId(id) + (rf_ids ? ",\"Record function id\":" + std::to_string(id) : ""));
    return id;
  }
  // Adds a label that is on thread 1 in the host trace and ran on `tid`.
  uint64_t AddLabelElsewhere(uint64_t parent, int tid, const std::string& name, int64_t start,
                             int64_t duration) {
    const uint64_t id = next_id_++;
    AddHostNode(id, parent, 1, name, id, "");
    AddEvent("user_annotation", name, tid, start, duration,
             "\"Record function id\":" + std::to_string(id));
    return id;
  }
  void AddRuntime(uint64_t op, int tid, const std::string& name, int64_t start, int64_t duration,
                  int64_t correlation) {
    AddEvent(
        "cuda_runtime", name, tid, start, duration,
        "\"correlation\":" + std::to_string(correlation) + "," +
            (external_ids ? ExternalId(op) : "\"External id\":" + std::to_string(correlation)));
  }
  void AddDeviceOp(uint64_t op, const std::string& category, const std::string& name, int stream,
                   int64_t start, int64_t duration, int64_t correlation,
                   const std::string& args = "") {
    std::string text = "\"device\":0,\"stream\":" + std::to_string(stream);
    text += ",\"correlation\":" + std::to_string(correlation);
    text +=
        "," + (external_ids ? ExternalId(op) : "\"External id\":" + std::to_string(correlation));
    Comma(events_);
    events_ += "{\"ph\":\"X\",\"cat\":\"" + category + "\",\"name\":\"" + name +
               "\",\"pid\":0,\"tid\":" + std::to_string(stream) + ",\"ts\":" + Micros(start) +
               ",\"dur\":" + Micros(duration) + ",\"args\":{" + text + args + "}}";
  }
  void AddEvent(const std::string& category, const std::string& name, int tid, int64_t start,
                int64_t duration, const std::string& args) {
    Comma(events_);
    events_ += "{\"ph\":\"X\",\"cat\":\"" + category + "\",\"name\":\"" + name +
               "\",\"pid\":77,\"tid\":" + std::to_string(9000 + tid) + ",\"ts\":" + Micros(start) +
               ",\"dur\":" + Micros(duration) + ",\"args\":{" + args + "}}";
  }
  // Adds a thread's root, and before the first one the process root.
  void AddThread(int tid) {
    if (tid == 1) AddHostNode(1, 1, 0, "[pytorch|profiler|execution_trace|process]", 0, "");
    AddHostNode(static_cast<uint64_t>(tid) + 1, 1, tid, "[pytorch|profiler|execution_trace|thread]",
                0, "");
  }
  void AddHostNode(uint64_t id, uint64_t parent, int tid, const std::string& name, uint64_t rf_id,
                   const std::string& attrs) {
    const auto attr = [](const std::string& key, const std::string& value) {
      return "{\"name\":\"" + key + "\",\"type\":\"uint64\",\"value\":" + value + "}";
    };
    const bool is_operator = id > 10 && !name.starts_with("gloo:");
    Comma(nodes_);
    nodes_ += "{\"id\":" + std::to_string(id) + ",\"name\":\"" + name +
              "\",\"ctrl_deps\":" + std::to_string(parent) +
              ",\"inputs\":{\"values\":[],\"shapes\":[],\"types\":[]}"
              ",\"outputs\":{\"values\":[],\"shapes\":[],\"types\":[]},\"attrs\":[" +
              attr("rf_id", std::to_string(rf_id)) + "," + attr("tid", std::to_string(tid)) + "," +
              attr("op_schema", is_operator ? "\"" + name + "()\"" : "\"\"") + attrs + "]}";
  }

  Trace Host() const {
    return ReadHost("{\"schema\":\"1.1.1-chakra.0.0.4\",\"pid\":77," + host_facts + "\"nodes\":[" +
                    nodes_ + "]}");
  }
  Trace Device() const { return ReadDevice("{\"traceEvents\":[" + events_ + "]}"); }

 private:
  static void Comma(std::string& text) { text += text.empty() ? "" : ",\n"; }
  static std::string ExternalId(uint64_t op) {
    return "\"External id\":" + std::to_string(op + 5000);
  }

  std::string nodes_;
  std::string events_;
  uint64_t next_id_ = 11;
};

LinkResult LinkTraces(const Trace& host, const Trace& device, bool keep_orphans = true) {
  auto result = Link(host, device, {.keep_orphans = keep_orphans});
  EXPECT_TRUE(result.has_value()) << result.error().message;
  uint64_t nodes = 0;
  uint64_t events = 0;
  for (const uint64_t count : result->host) nodes += count;
  for (const uint64_t count : result->events) events += count;
  EXPECT_EQ(nodes, host.node_count()) << "every host node is in one place";
  EXPECT_EQ(events, device.node_count()) << "every event is in one place";
  EXPECT_TRUE(result->trace.is_acyclic());
  return *std::move(result);
}
LinkResult LinkRun(const MadeUpRun& run, bool keep_orphans = true) {
  return LinkTraces(run.Host(), run.Device(), keep_orphans);
}

uint64_t Count(const LinkResult& result, HostLink link) {
  return result.host[static_cast<size_t>(link)];
}
uint64_t Count(const LinkResult& result, EventLink link) {
  return result.events[static_cast<size_t>(link)];
}

NodeId FindByName(const Trace& trace, std::string_view name) {
  NodeId found;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.name(node) == name && !found) found = node;
  });
  EXPECT_TRUE(found) << name;
  return found;
}
uint64_t ParentId(const Trace& trace, std::string_view name) {
  const NodeId parent = trace.parent(FindByName(trace, name));
  return parent ? trace.source_id(parent) : UINT64_MAX;
}

TEST(Link, TimesHostNodesAndHangsKernelsBelowTheirOperators) {
  MadeUpRun run;
  run.AddThread(1);
  const uint64_t outer = run.AddOp(2, 1, "aten::linear", 1000, 9000);
  const uint64_t inner = run.AddOp(outer, 1, "aten::addmm", 2000, 5000);
  run.AddRuntime(inner, 1, "cudaLaunchKernel", 3000, 1000, 40);
  run.AddRuntime(outer, 1, "cudaLaunchKernelExC", 8000, 500, 41);
  run.AddRuntime(outer, 1, "cudaStreamSynchronize", 9000, 500, 42);
  run.AddDeviceOp(inner, "kernel", "gemm", 7, 20000, 3000, 40, ",\"grid\":[1,2,3]");
  run.AddDeviceOp(outer, "gpu_memcpy", "Memcpy HtoD", 7, 23000, 100, 41);
  const LinkResult result = LinkRun(run);
  const Trace& trace = result.trace;
  EXPECT_EQ(trace.info().format, TraceFormat::kLinked);
  EXPECT_EQ(Count(result, HostLink::kRoot), 2u);
  EXPECT_EQ(Count(result, HostLink::kRfId), 2u);
  EXPECT_EQ(Count(result, EventLink::kHostNode), 2u);
  EXPECT_EQ(Count(result, EventLink::kLaunch), 2u);
  EXPECT_EQ(Count(result, EventLink::kRuntime), 1u);
  EXPECT_EQ(Count(result, EventLink::kByCorrelation), 2u);
  ASSERT_EQ(trace.node_count(), 6u);

  const NodeId linear = trace.Find(outer);
  EXPECT_EQ(trace.start(linear), Nanos{1000});
  EXPECT_EQ(trace.duration(linear), Nanos{9000});
  EXPECT_EQ(trace.exclusive(linear), Nanos{4000});
  EXPECT_EQ(trace.text(trace.lane(trace.lane_id(linear)).thread), "9001");

  const NodeId gemm = FindByName(trace, "gemm");
  EXPECT_EQ(trace.kind(gemm), NodeKind::kKernel);
  EXPECT_EQ(trace.place(gemm), Place::kDevice);
  EXPECT_EQ(trace.parent(gemm), trace.Find(inner));
  EXPECT_EQ(trace.start(gemm), Nanos{20000});
  EXPECT_EQ(trace.exclusive(gemm), Nanos{3000});
  EXPECT_EQ(trace.correlation(gemm), 40);
  EXPECT_EQ(trace.lane(trace.lane_id(gemm)).stream, 7);
  ASSERT_EQ(trace.extras(gemm).size(), 1u);
  EXPECT_EQ(trace.text(trace.extras(gemm)[0].text), "[1,2,3]");
  const NodeId copy = FindByName(trace, "Memcpy HtoD");
  EXPECT_EQ(trace.parent(copy), linear);
  ASSERT_EQ(trace.deps(copy).size(), 1u) << "after the kernel on its stream";
  EXPECT_EQ(trace.deps(copy)[0], gemm);
  EXPECT_EQ(trace.dep_kinds(copy)[0], DepKind::kSync);
  const NodeId addmm = trace.Find(inner);
  ASSERT_EQ(trace.deps(addmm).size(), 1u) << "after the node before it on its thread";
  EXPECT_EQ(trace.deps(addmm)[0], linear);
}

// Returns the names of the nodes that `name` depends on with kind kSync.
std::vector<std::string> SyncDeps(const Trace& trace, std::string_view name) {
  const NodeId node = FindByName(trace, name);
  std::vector<std::string> names;
  for (size_t i = 0; i < trace.deps(node).size(); ++i) {
    if (trace.dep_kinds(node)[i] == DepKind::kSync) {
      names.emplace_back(trace.name(trace.deps(node)[i]));
    }
  }
  std::ranges::sort(names);
  return names;
}
using Names = std::vector<std::string>;

uint64_t Count(const LinkResult& result, SyncKind kind) {
  return result.syncs[static_cast<size_t>(kind)];
}

// A thread that launches kernels on streams 7 and 20, one operator each, every 10 µs.
struct TwoStreams : MadeUpRun {
  TwoStreams() { AddThread(1); }
  uint64_t Launch(const std::string& kernel, int stream, int64_t device_start,
                  const std::string& category = "kernel",
                  const std::string& call = "cudaLaunchKernel", int64_t call_duration = 1000) {
    const uint64_t op = AddOp(2, 1, "op_" + kernel, now, call_duration + 3000);
    AddRuntime(op, 1, call, now + 1000, call_duration, ++correlation);
    AddDeviceOp(op, category, kernel, stream, device_start, 4000, correlation);
    now += call_duration + 9000;
    return op;
  }
  // Adds an operator that calls the runtime once; returns the call's correlation.
  int64_t Call(const std::string& name, int64_t duration) {
    const uint64_t op = AddOp(2, 1, "op_" + name, now, duration + 2000);
    AddRuntime(op, 1, name, now + 1000, duration, ++correlation);
    now += duration + 8000;
    return correlation;
  }
  void Record(const std::string& name, int stream, int64_t of, const std::string& more = "") {
    AddDeviceOp(11, "cuda_sync", name, stream, now, 100, of, more);
  }
  static std::string OfEvent(int stream, int64_t recorded) {
    return ",\"wait_on_stream\":" + std::to_string(stream) +
           ",\"wait_on_cuda_event_record_corr_id\":" + std::to_string(recorded);
  }

  int64_t now = 1000;
  int64_t correlation = 100;
};

TEST(Sync, AStreamWaitsForWhatWasLaunchedBeforeTheEventWasRecorded) {
  TwoStreams run;
  run.Launch("a", 7, 20'000);
  run.Launch("b", 7, 24'000);
  const int64_t recorded = run.Call("cudaEventRecord", 500);
  run.Launch("c", 7, 40'000);  // after the record: not waited for
  const int64_t waits = run.Call("cudaStreamWaitEvent", 500);
  run.Record("Stream Wait Event", 20, waits, TwoStreams::OfEvent(7, recorded));
  run.Launch("d", 20, 60'000);
  run.Launch("e", 20, 70'000);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(SyncDeps(result.trace, "d"), Names{"b"});
  EXPECT_EQ(SyncDeps(result.trace, "e"), Names{"d"});
  EXPECT_EQ(Count(result, SyncKind::kStreamWait), 1u);
  EXPECT_EQ(result.sync_edges, 1u);
}

TEST(Sync, TheNextNodeWaitsForTheStreamAndTheWaitIsNoWork) {
  TwoStreams run;
  run.Launch("a", 7, 20'000);
  run.Launch("other", 20, 20'000);
  const int64_t waits = run.Call("cudaStreamSynchronize", 30'000);
  run.Record("Stream Sync", 7, waits);
  run.Launch("b", 7, run.now + 5000);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(SyncDeps(result.trace, "op_b"), Names{"a"});
  EXPECT_TRUE(SyncDeps(result.trace, "op_cudaStreamSynchronize").empty());
  EXPECT_EQ(Count(result, SyncKind::kStreamSync), 1u);
  // The call began at 22 µs, the kernel ended at 24 µs: two of the call's 30 µs were a wait.
  const NodeId caller = FindByName(result.trace, "op_cudaStreamSynchronize");
  EXPECT_EQ(*result.trace.duration(caller) - *result.trace.exclusive(caller), Nanos{2000});
}

TEST(Sync, TheNextNodeWaitsForAnEvent) {
  TwoStreams run;
  run.Launch("a", 7, 20'000);
  const int64_t recorded = run.Call("cudaEventRecord", 500);
  run.Launch("b", 7, 24'000);
  const int64_t waits = run.Call("cudaEventSynchronize", 30'000);
  run.Record("Event Sync", 7, waits, TwoStreams::OfEvent(7, recorded));
  run.Launch("c", 7, run.now + 5000);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(SyncDeps(result.trace, "op_c"), Names{"a"});
  EXPECT_EQ(Count(result, SyncKind::kEventSync), 1u);
}

TEST(Sync, TheNextNodeWaitsForAllStreamsOfTheDevice) {
  for (const bool with_record : {true, false}) {
    TwoStreams run;
    run.Launch("a", 7, 20'000);
    run.Launch("b", 20, 24'000);
    const int64_t waits = run.Call("cudaDeviceSynchronize", 30'000);
    if (with_record) run.Record("Context Sync", -1, waits);
    run.Launch("c", 7, run.now + 5000);
    const LinkResult result = LinkRun(run);
    EXPECT_EQ(SyncDeps(result.trace, "op_c"), (Names{"a", "b"})) << with_record;
    EXPECT_EQ(Count(result, SyncKind::kDeviceSync), 1u);
  }
}

TEST(Sync, AThreadWaitsOnceForWhatIsDone) {
  TwoStreams run;
  run.Launch("a", 7, 20'000);
  run.Launch("b", 20, 24'000);
  run.Call("cudaDeviceSynchronize", 30'000);
  run.Launch("c", 7, run.now + 5000);
  run.Call("cudaDeviceSynchronize", 30'000);
  run.Launch("d", 20, run.now + 5000);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(SyncDeps(result.trace, "op_c"), (Names{"a", "b"}));
  EXPECT_EQ(SyncDeps(result.trace, "op_d"), Names{"c"}) << "c's operator is behind b";
  EXPECT_EQ(Count(result, SyncKind::kDeviceSync), 2u);
}

TEST(Sync, AThreadWaitsAgainForWhatIsNotDone) {
  TwoStreams run;
  run.Launch("ends_behind_the_call", 7, 40'000);
  run.Launch("begins_behind_the_call", 20, 52'000);
  run.Call("cudaDeviceSynchronize", 20'000);  // from 22 to 42 µs
  run.Launch("c", 9, 54'000);
  run.Call("cudaDeviceSynchronize", 10'000);
  run.Launch("d", 9, 80'000);
  run.Call("cudaDeviceSynchronize", 10'000);
  run.Launch("e", 9, 110'000);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(SyncDeps(result.trace, "op_c"), Names{"ends_behind_the_call"});
  EXPECT_EQ(SyncDeps(result.trace, "op_d"),
            (Names{"begins_behind_the_call", "c", "ends_behind_the_call"}));
  EXPECT_EQ(SyncDeps(result.trace, "op_e"), Names{"d"});
}

TEST(Sync, ACallInsideOfAnotherWaitsForTheSame) {
  TwoStreams run;
  run.Launch("a", 7, 20'000);
  run.AddRuntime(11, 1, "cudaDeviceSynchronize", 15'000, 20'000, 200);
  run.AddRuntime(11, 1, "cuCtxSynchronize", 16'000, 18'000, 201);
  const Trace device = run.Device();
  const DeviceMatch match = MatchDevice(device, std::vector<NodeId>(device.node_count()));
  const SyncEdges found = FindSyncEdges(device, match);
  ASSERT_EQ(found.edges.size(), 2u);
  EXPECT_EQ(found.waited[found.edges[0].node.index()], Nanos{9000});
  EXPECT_EQ(found.waited[found.edges[1].node.index()], Nanos{8000});
}

// Counts edges of device syncs of two threads, after launches of one kernel on each stream.
size_t CountDeviceSyncEdges(int streams, int syncs, int64_t kernel_duration) {
  MadeUpRun run;
  for (int i = 0; i < streams; ++i) {
    run.AddRuntime(1, 1, "cudaLaunchKernel", 100 * i, 50, i);
    run.AddDeviceOp(1, "kernel", "k", i, 100'000, kernel_duration, i);
  }
  for (int i = 0; i < syncs; ++i) {
    run.AddRuntime(1, 1 + i % 2, "cudaDeviceSynchronize", 200'000 + 100 * i, 50, streams + i);
  }
  const Trace device = run.Device();
  const DeviceMatch match = MatchDevice(device, std::vector<NodeId>(device.node_count()));
  return FindSyncEdges(device, match).edges.size();
}

TEST(Sync, EdgesOfDeviceSyncsDoNotGrowWithSyncsTimesStreams) {
  EXPECT_EQ(CountDeviceSyncEdges(100, 100, 1000), 2u * 100) << "for each thread and stream";
  EXPECT_EQ(CountDeviceSyncEdges(600, 12, 9'000'000), 2u * 600 + 10 * 256) << "not done";
}

TEST(Sync, TheNextNodeWaitsForACopyThatBlocks) {
  for (const std::string call : {"cudaMemcpyAsync", "hipMemcpyWithStream", "cudaMemcpy"}) {
    TwoStreams run;
    const std::string copy =
        call == "cudaMemcpyAsync" ? "Memcpy DtoH (Device -> Pageable)" : "Memcpy DtoH";
    run.Launch(copy, 7, 8000, "gpu_memcpy", call, 20'000);
    run.Launch("next", 7, 60'000);
    const LinkResult result = LinkRun(run);
    EXPECT_EQ(SyncDeps(result.trace, "op_next"), Names{copy}) << call;
    EXPECT_EQ(Count(result, SyncKind::kBlockingCopy), 1u);
  }
  TwoStreams run;
  run.Launch("Memcpy DtoH (Device -> Pinned)", 7, 8000, "gpu_memcpy", "cudaMemcpyAsync", 500);
  run.Launch("next", 7, 60'000);
  EXPECT_TRUE(SyncDeps(LinkRun(run).trace, "op_next").empty());
}

// Record of PyTorch 2.11's profiler for events on CUDA 13.
constexpr std::string_view kOfSomeEvent =
    ",\"wait_on_stream\":-1,\"wait_on_cuda_event_record_corr_id\":-1";

TEST(Sync, TimesSayForWhichEventAStreamWaited) {
  TwoStreams run;
  run.Launch("a", 7, 8000);
  run.Launch("b", 7, 100'000);
  const int64_t waits = run.Call("cudaStreamWaitEvent", 500);
  run.Record("Stream Wait Event", 20, waits, std::string(kOfSomeEvent));
  run.Launch("other", 7, 104'000);  // launched after the wait, on another stream
  run.Launch("c", 20, 106'000);
  run.Launch("d", 20, 120'000);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(SyncDeps(result.trace, "c"), Names{"b"});
  EXPECT_EQ(SyncDeps(result.trace, "d"), Names{"c"});
  EXPECT_EQ(SyncDeps(result.trace, "other"), Names{"b"}) << "its stream alone";
  EXPECT_EQ(Count(result, SyncKind::kByTimes), 1u);
  EXPECT_EQ(Count(result, SyncKind::kUnresolved), 0u);
}

TEST(Sync, OnlyStreamsWithRecordsWaitWhereThereAreRecords) {
  TwoStreams run;
  run.Launch("a", 7, 100'000);
  run.Call("cudaStreamWaitEvent", 500);  // of a stream without work
  run.Launch("b", 20, 105'000);
  const int64_t waits = run.Call("cudaStreamWaitEvent", 500);
  run.Record("Stream Wait Event", 7, waits, std::string(kOfSomeEvent));
  run.Launch("c", 7, 110'000);
  const LinkResult result = LinkRun(run);
  EXPECT_TRUE(SyncDeps(result.trace, "b").empty());
  EXPECT_EQ(SyncDeps(result.trace, "c"), (Names{"a", "b"}));
}

TEST(Sync, AskingForAnEventIsNoWait) {
  TwoStreams run;
  run.Launch("a", 7, 20'000);
  const int64_t recorded = run.Call("cudaEventRecord", 500);
  const int64_t asks = run.Call("cudaEventQuery", 500);
  run.Record("Event Sync", -1, asks, TwoStreams::OfEvent(7, recorded));
  run.Launch("b", 7, run.now + 5000);
  const LinkResult result = LinkRun(run);
  EXPECT_TRUE(SyncDeps(result.trace, "op_b").empty());
  EXPECT_EQ(result.syncs, (std::array<uint64_t, kSyncKindCount>{}));
}

TEST(Sync, WhatTheTraceDoesNotSayIsCountedAndNoEdge) {
  TwoStreams run;
  run.Launch("a", 7, 10'000);
  run.Launch("b", 20, 14'000);
  run.Call("cudaStreamSynchronize", 30'000);  // ambiguous: two candidates
  const int64_t waits = run.Call("cudaStreamWaitEvent", 500);
  run.Record("Stream Wait Event", 20, waits, TwoStreams::OfEvent(7, 9999));  // not recorded
  run.Launch("c", 20, run.now + 5000);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(Count(result, SyncKind::kUnresolved), 2u);
  EXPECT_EQ(result.sync_edges, 0u);
}

TEST(ThreadEdges, OnePerGapToWhatEndedMeanwhile) {
  MadeUpRun run;
  run.AddThread(1);
  run.AddThread(2);
  constexpr int64_t kMs = 1'000'000;
  run.AddOp(2, 1, "forward", 0, 2 * kMs);
  const uint64_t backward = run.AddOp(3, 2, "backward", 2 * kMs + 1000, 3 * kMs);
  run.AddOp(backward, 2, "mm", 2 * kMs + 2000, 2 * kMs);
  run.AddOp(3, 2, "accumulate", 5 * kMs + 5000, kMs / 2);
  const uint64_t step = run.AddOp(2, 1, "step", 6 * kMs, kMs);
  run.AddOp(step, 1, "add_", 6 * kMs + 1000, 1000);
  run.AddOp(2, 1, "lone", 9 * kMs, kMs);  // a gap without activity
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(SyncDeps(result.trace, "backward"), Names{"forward"});
  EXPECT_TRUE(SyncDeps(result.trace, "mm").empty());
  EXPECT_TRUE(SyncDeps(result.trace, "accumulate").empty());
  EXPECT_EQ(SyncDeps(result.trace, "step"), Names{"accumulate"});
  EXPECT_TRUE(SyncDeps(result.trace, "add_").empty());
  EXPECT_TRUE(SyncDeps(result.trace, "lone").empty());
  EXPECT_EQ(result.thread_edges, 2u);
}

TEST(Link, AnyRuntimeCallLaunches) {
  MadeUpRun run;
  run.AddThread(1);
  const uint64_t op = run.AddOp(2, 1, "op", 0, 1'000'000);
  int64_t correlation = 1;
  for (const char* name :
       {"cuLaunchKernelEx", "cudaGraphLaunch", "hipLaunchKernel", "hipGraphLaunch",
        "cudaMemsetAsync", "cuMemcpyHtoDAsync_v2", "hipExtModuleLaunchKernel", "anything"}) {
    run.AddRuntime(op, 1, name, correlation * 1000, 10, correlation);
    run.AddDeviceOp(op, "kernel", name, 7, correlation * 2000, 10, correlation);
    ++correlation;
  }
  // A graph launch starts many kernels.
  run.AddDeviceOp(op, "kernel", "second of the graph", 7, 30000, 10, 2);
  run.AddDeviceOp(op, "gpu_memset", "Memset (Device)", 7, 31000, 10, 5);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(Count(result, EventLink::kByCorrelation), 10u);
  EXPECT_EQ(result.device_linked(), result.device_nodes());
}

// The calls themselves are not nodes of a linked trace.
TEST(Link, KernelsThatMayBeginEarlySayWhatLaunchedThem) {
  MadeUpRun run;
  run.AddThread(1);
  const uint64_t op = run.AddOp(2, 1, "op", 0, 1'000'000);
  run.AddRuntime(op, 1, "cudaLaunchKernel", 1000, 10, 1);
  run.AddDeviceOp(op, "kernel", "first", 7, 2000, 1000, 1);
  run.AddRuntime(op, 1, "cudaLaunchKernelExC_v11060", 1100, 10, 2);
  run.AddDeviceOp(op, "kernel", "early", 7, 2500, 1000, 2);
  const LinkResult result = LinkRun(run);
  const Trace& trace = result.trace;
  std::map<std::string, std::string> launched_by;
  ForEachNode(trace, [&](NodeId node) {
    for (const Extra& extra : trace.extras(node)) {
      if (trace.text(extra.key) != kLaunchedByKey) continue;
      launched_by.emplace(trace.name(node), trace.text(extra.text));
    }
  });
  EXPECT_EQ(launched_by,
            (std::map<std::string, std::string>{{"early", "\"cudaLaunchKernelExC_v11060\""}}));
}

TEST(Link, OldExternalIdsAreNoOperators) {
  MadeUpRun run;
  run.external_ids = false;
  run.AddThread(1);
  const uint64_t first = run.AddOp(2, 1, "first", 1000, 1000);
  const uint64_t second = run.AddOp(2, 1, "second", 2000, 2000);
  // As a number, the kernel's External id is that of the first operator.
  run.AddRuntime(second, 1, "cudaLaunchKernel", 2500, 100, static_cast<int64_t>(first) + 5000);
  run.AddDeviceOp(second, "kernel", "k", 7, 5000, 10, static_cast<int64_t>(first) + 5000);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(ParentId(result.trace, "k"), second);
}

TEST(Link, ExternalIdDecidesBetweenOperatorsThatTouch) {
  MadeUpRun run;
  run.AddThread(1);
  const uint64_t first = run.AddOp(2, 1, "first", 1000, 1000);
  const uint64_t second = run.AddOp(2, 1, "second", 2000, 1000);
  run.AddRuntime(first, 1, "cudaLaunchKernel", 2000, 0, 1);
  run.AddDeviceOp(first, "kernel", "of the first", 7, 5000, 10, 1);
  run.AddRuntime(second, 1, "cudaLaunchKernel", 2000, 0, 2);
  run.AddDeviceOp(second, "kernel", "of the second", 7, 6000, 10, 2);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(ParentId(result.trace, "of the first"), first);
  EXPECT_EQ(ParentId(result.trace, "of the second"), second);
}

TEST(Link, ClimbsToTheNearestOperatorOfTheHostTrace) {
  MadeUpRun run;
  run.AddThread(1);
  const uint64_t op = run.AddOp(2, 1, "aten::mm", 1000, 5000);
  run.AddEvent("python_function", "forward", 1, 2000, 2000, "\"Python id\":1");
  run.AddRuntime(op, 1, "cudaLaunchKernel", 2500, 100, 1);
  run.AddDeviceOp(op, "kernel", "k", 7, 5000, 10, 1);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(ParentId(result.trace, "k"), op);
  EXPECT_EQ(Count(result, EventLink::kHostUnlinked), 1u);
}

TEST(Link, KeepsAndCountsOrphans) {
  MadeUpRun run;
  run.AddThread(1);
  const uint64_t op = run.AddOp(2, 1, "a", 1000, 1000);
  run.AddOp(2, 1, "b", 9000, 1000);
  run.external_ids = false;
  run.AddRuntime(op, 1, "cudaLaunchKernel", 4000, 100, 1);
  run.AddDeviceOp(op, "kernel", "between operators", 7, 5000, 10, 1);
  run.AddDeviceOp(op, "kernel", "not launched", 7, 6000, 10, 2);
  run.AddRuntime(op, 1, "cudaLaunchKernel", 40000, 100, 3);
  run.AddDeviceOp(op, "kernel", "later", 7, 50000, 10, 3);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(Count(result, EventLink::kOrphanNoOperator), 1u);
  EXPECT_EQ(Count(result, EventLink::kOrphanNoLaunch), 1u);
  EXPECT_EQ(Count(result, EventLink::kOutside), 1u) << "another step's";
  EXPECT_EQ(ParentId(result.trace, "between operators"), 2u) << "its thread's root";
  EXPECT_EQ(ParentId(result.trace, "not launched"), 1u) << "the process root";
  EXPECT_EQ(result.trace.stats()[Stat::kUnlinkedDeviceOp], 2u);
  EXPECT_EQ(result.trace.node_count(), 6u);
  EXPECT_EQ(LinkRun(run, /*keep_orphans=*/false).trace.node_count(), 4u);
}

TEST(Link, HostNodesWithoutTheirCallerBelongToTheirThread) {
  MadeUpRun run;
  run.AddThread(1);
  const uint64_t first = run.AddOp(2, 1, "first", 1000, 1000);
  const uint64_t orphan = run.AddOp(777, 1, "orphan", 3000, 2000);
  const uint64_t inner = run.AddOp(orphan, 1, "inner", 3500, 500);
  const uint64_t last = run.AddOp(2, 1, "last", 6000, 1000);
  const LinkResult result = LinkRun(run);
  const Trace& trace = result.trace;
  EXPECT_EQ(result.adopted, 1u);
  EXPECT_EQ(ParentId(trace, "orphan"), 2u);
  EXPECT_TRUE(trace.dangling().empty());
  for (const auto& [node, before] :
       {std::pair(orphan, first), std::pair(inner, orphan), std::pair(last, inner)}) {
    const NodeId found = trace.Find(node);
    ASSERT_EQ(trace.deps(found).size(), 1u) << node;
    EXPECT_EQ(trace.deps(found)[0], trace.Find(before));
  }
}

// It would be below itself.
TEST(Link, AnOrphanAboveTheRootOfItsThreadDoesNotBelongToIt) {
  MadeUpRun run;
  const uint64_t orphan = run.AddOp(777, 1, "orphan", 1000, 9000);
  run.AddHostNode(50, orphan, 1, "[pytorch|profiler|execution_trace|thread]", 0, "");
  const uint64_t inner = run.AddOp(50, 1, "inner", 2000, 1000);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(result.adopted, 0u);
  EXPECT_EQ(ParentId(result.trace, "inner"), 50u);
  EXPECT_TRUE(result.trace.is_acyclic());
  EXPECT_NE(result.trace.Find(inner), NodeId::None());
}

// PyTorch's observer takes the end of a label on a Gloo thread for the end of the node running on
// the thread on which the label began.
TEST(Link, TheClockTellsCallersWhereGlooDisturbedTheObserver) {
  MadeUpRun run;
  run.AddThread(1);
  const uint64_t backward = run.AddOp(2, 1, "backward", 1000, 3000);
  const uint64_t reduce = run.AddOp(backward, 1, "c10d::allreduce_", 1500, 500);
  const uint64_t label = run.AddOp(reduce, 1, "gloo:all_reduce", 1600, 5000);
  run.AddOp(label, 1, "inside the backward", 2500, 500);
  run.AddOp(backward, 1, "takes no time at the end", 4000, 0);
  const uint64_t optimizer = run.AddOp(backward, 1, "Optimizer.step#SGD.step", 5000, 4000);
  run.AddOp(optimizer, 1, "before the end", 5100, 1000);
  run.AddOp(2, 1, "after the end", 7000, 1000);
  run.AddOp(optimizer, 1, "after the step", 9500, 100);
  const LinkResult result = LinkRun(run);
  const Trace& trace = result.trace;
  EXPECT_EQ(ParentId(trace, "gloo:all_reduce"), reduce);
  EXPECT_EQ(ParentId(trace, "inside the backward"), backward);
  EXPECT_EQ(ParentId(trace, "takes no time at the end"), backward);
  EXPECT_EQ(ParentId(trace, "Optimizer.step#SGD.step"), 2u);
  EXPECT_EQ(ParentId(trace, "before the end"), optimizer);
  EXPECT_EQ(ParentId(trace, "after the end"), optimizer);
  EXPECT_EQ(ParentId(trace, "after the step"), 2u);
  EXPECT_EQ(result.moved, 4u);
}

// The observer assigns the label to the issuing thread, and no caller to the nodes that ran on
// Gloo's.
TEST(Link, WhatGloosThreadsRunIsOfTheCall) {
  MadeUpRun run;
  run.AddThread(1);
  const uint64_t call = run.AddOp(2, 1, "c10d::allgather_", 1000, 500);
  const uint64_t loss = run.AddOp(2, 1, "loss", 1600, 5000);
  run.AddThread(9);
  const uint64_t label = run.AddLabelElsewhere(loss, 9, "gloo:all_gather", 1700, 3000);
  run.AddOp(label, 1, "part of the loss", 1800, 100);
  const uint64_t select = run.AddOp(10, 9, "select", 2000, 500);
  run.AddOp(select, 9, "as_strided", 2100, 100);
  run.AddOp(10, 9, "later", 5000, 100);
  const LinkResult result = LinkRun(run);
  const Trace& trace = result.trace;
  EXPECT_EQ(ParentId(trace, "gloo:all_gather"), call);
  EXPECT_EQ(ParentId(trace, "select"), label);
  EXPECT_EQ(ParentId(trace, "as_strided"), select);
  EXPECT_EQ(ParentId(trace, "part of the loss"), loss);
  EXPECT_EQ(ParentId(trace, "later"), 10u);
}

TEST(Link, DoesNotBelieveIdsThatNameSomethingElse) {
  MadeUpRun run;
  run.AddThread(1);
  run.AddOp(2, 1, "a", 1000, 1000);
  run.AddHostNode(500, 2, 1, "b", 500, "");
  run.AddEvent("cpu_op", "c", 1, 3000, 100, "\"Record function id\":500");
  run.AddHostNode(501, 2, 1, "a", 11, "");
  run.AddHostNode(502, 2, 1, "d", 502, "");
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(Count(result, HostLink::kRfId), 1u);
  EXPECT_EQ(Count(result, HostLink::kOtherName), 1u);
  EXPECT_EQ(Count(result, HostLink::kTaken), 1u);
  EXPECT_EQ(Count(result, HostLink::kNoEvent), 1u);
  EXPECT_EQ(result.trace.stats()[Stat::kUnlinkedHost], 3u);
  EXPECT_EQ(result.trace.start(result.trace.Find(500)), std::nullopt) << "unknown, not invented";
}

// A part of a truncated host trace is written by `etude slice`, and linked.
TEST(Link, KnowsWhatTheHostTraceSaysWasLost) {
  MadeUpRun run;
  run.host_facts = R"("etude_met":{"truncated":1},)";
  run.AddThread(1);
  run.AddOp(2, 1, "a", 1000, 1000);
  const LinkResult result = LinkRun(run);
  EXPECT_EQ(result.trace.stats()[Stat::kTruncated], 1u);
  EXPECT_EQ(result.trace.info().extras.size(), 1u) << "said once in what is written";
}

TEST(Link, CommunicationGetsItsFactsFromTheHost) {
  MadeUpRun run;
  run.AddThread(1);
  const std::string attrs = R"(,{"name":"collective_name","type":"string","value":"allreduce"},)"
                            R"({"name":"dtype","type":"string","value":"Float"},)"
                            R"({"name":"in_msg_nelems","type":"uint64","value":256},)"
                            R"({"name":"pg_name","type":"string","value":"3"},)"
                            R"({"name":"pg_size","type":"uint64","value":8})";
  const uint64_t comm = run.AddOp(2, 1, "record_param_comms", 1000, 5000, attrs);
  const uint64_t label = run.AddOp(comm, 1, "nccl:all_reduce", 2000, 3000);
  run.AddRuntime(label, 1, "cudaLaunchKernelExC", 2500, 100, 1);
  run.AddDeviceOp(label, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 20, 9000, 10, 1);
  const std::string send = R"(,{"name":"collective_name","type":"string","value":"send"})";
  const uint64_t p2p = run.AddOp(2, 1, "record_param_comms", 7000, 500, send);
  run.AddRuntime(p2p, 1, "cudaLaunchKernelExC", 7100, 100, 2);
  run.AddDeviceOp(p2p, "kernel", "ncclDevKernel_SendRecv(x)", 20, 10000, 10, 2);
  const LinkResult result = LinkRun(run);
  const Trace& trace = result.trace;
  const NodeId kernel = FindByName(trace, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)");
  EXPECT_EQ(trace.kind(kernel), NodeKind::kCollective);
  ASSERT_NE(trace.comm(kernel), nullptr);
  EXPECT_EQ(trace.comm(kernel)->type, CollectiveType::kAllReduce);
  EXPECT_EQ(trace.comm(kernel)->bytes, Bytes{1024});
  EXPECT_EQ(trace.text(trace.comm(kernel)->group), "3");
  EXPECT_EQ(trace.comm(kernel)->group_size, 8);
  EXPECT_EQ(trace.kind(FindByName(trace, "ncclDevKernel_SendRecv(x)")), NodeKind::kSend);
}

TEST(Link, RefusesTracesOfDifferentRanks) {
  MadeUpRun run;
  run.AddThread(1);
  run.AddOp(2, 1, "a", 0, 1);
  const Trace host = ReadHost(R"({"schema":"1.1.1","distributedInfo":{"rank":1},"nodes":[]})");
  const Trace device = ReadDevice(R"({"distributedInfo":{"rank":2},"traceEvents":[]})");
  const auto result = Link(host, device, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
}

TEST(Link, ShowsThatTimesAreOfAnotherProcess) {
  MadeUpRun run;
  run.AddThread(1);
  run.AddOp(2, 1, "a", 0, 1);
  EXPECT_EQ(CountOfOtherProcess(LinkRun(run).trace), 0u);
  const Trace host = ReadHost(
      R"({"schema":"1.1.1-chakra.0.0.4","pid":78,"nodes":[{"id":12,"name":"a","ctrl_deps":1,)"
      R"("inputs":{"values":[],"shapes":[],"types":[]},"outputs":{"values":[],"shapes":[],)"
      R"("types":[]},"attrs":[{"name":"rf_id","type":"uint64","value":5}]}]})");
  const Trace device = ReadDevice(
      R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":77,"tid":1,"ts":1,"dur":1,)"
      R"("args":{"Record function id":5}}]})");
  const Trace linked = LinkTraces(host, device).trace;
  EXPECT_EQ(CountOfOtherProcess(linked), 1u);
  EXPECT_TRUE(ValidatePair(LinkRun(run).trace).empty());
  ASSERT_EQ(ValidatePair(linked).size(), 1u);
  EXPECT_EQ(ValidatePair(linked)[0].name, "other_process");
  EXPECT_FALSE(IsValid(Validate(linked)));
}

TEST(Link, NumbersNodesWhoseIdsAreNotUnique) {
  MadeUpRun run;
  run.AddThread(1);
  const uint64_t op = run.AddOp(2, 1, "a", 1000, 1000);
  run.AddHostNode(op, 2, 1, "again", 700, "");
  run.AddHostNode(800, 999, 9, "lost", 800, "");  // of a thread without a root
  const LinkResult result = LinkRun(run);
  EXPECT_TRUE(result.renumbered);
  EXPECT_EQ(result.trace.stats()[Stat::kDuplicateId], 0u);
  EXPECT_EQ(CarriedStats(result.trace)[Stat::kRenumberedId], 1u);
  EXPECT_EQ(result.trace.stats()[Stat::kDanglingParent], 1u) << "stays what it was";
  EXPECT_EQ(ParentId(result.trace, "again"), ParentId(result.trace, "a"));
}

TEST(Link, FreshIdsAreNotThoseOfMissingNodes) {
  MadeUpRun run;
  run.AddThread(1);
  const uint64_t op = run.AddOp(2, 1, "a", 1000, 1000);
  run.AddHostNode(op + 1, op + 2, 9, "orphan", 700, "");  // of a thread without a root
  run.AddRuntime(op, 1, "cudaLaunchKernel", 1500, 100, 1);
  run.AddDeviceOp(op, "kernel", "k", 7, 5000, 10, 1);
  const LinkResult result = LinkRun(run);
  EXPECT_FALSE(result.trace.parent(FindByName(result.trace, "orphan")));
  EXPECT_GT(result.trace.source_id(FindByName(result.trace, "k")), op + 2);
}

// --- Made-up runs of any shape ---

constexpr const char* kNames[] = {"aten::add", "aten::mm", "aten::copy_", "forward"};

class RandomRun {
 public:
  RandomRun(uint32_t seed, bool coarse) : random_(seed), coarse_(coarse) {}

  struct Planted {
    std::map<uint64_t, std::pair<int64_t, int64_t>> times;  // of host nodes
    std::map<std::string, uint64_t> launchers;              // kernel name -> host node
  };

  Planted Fill(MadeUpRun& run, int steps = 1) {
    Planted planted;
    for (int tid = 1; tid <= 2; ++tid) run.AddThread(tid);
    int64_t now = 1'000'000;
    for (int step = 0; step < steps; ++step) {
      for (int tid = 1; tid <= 2; ++tid) {
        for (int i = 0; i < 6; ++i)
          now = AddOp(run, planted, static_cast<uint64_t>(tid) + 1, tid, now, 0);
      }
    }
    return planted;
  }

 private:
  int64_t Below(int64_t bound) { return static_cast<int64_t>(random_()) % bound; }
  int64_t Step() { return coarse_ ? 1000 * Below(2) : 1 + Below(5000); }

  // Returns the end of the operator.
  int64_t AddOp(MadeUpRun& run, Planted& planted, uint64_t parent, int tid, int64_t start,
                int depth) {
    // The operator's own end is known only after its children: times are planned first.
    struct Plan {
      std::string name;
      int64_t start = 0;
      int64_t end = 0;
      std::vector<Plan> children;
      std::vector<int64_t> launches;
    };
    const auto plan = [&](auto& self, int64_t at, int level) -> Plan {
      Plan op{.name = kNames[Below(4)], .start = at};
      int64_t now = at;
      const int64_t parts = level > 3 ? Below(2) : Below(4);
      for (int64_t i = 0; i < parts; ++i) {
        now += Step();
        if (Below(3) == 0) {
          op.launches.push_back(now);
          now += Step();
        } else if (level < 4) {
          op.children.push_back(self(self, now, level + 1));
          now = op.children.back().end;
        }
      }
      op.end = now + Step();
      return op;
    };
    const auto emit = [&](auto& self, const Plan& op, uint64_t above) -> void {
      const uint64_t id = run.AddOp(above, tid, op.name, op.start, op.end - op.start);
      planted.times[id] = {op.start, op.end - op.start};
      for (const int64_t launch : op.launches) {
        const int64_t correlation = next_correlation_++;
        const std::string name = "kernel " + std::to_string(correlation);
        run.AddRuntime(id, tid, "cudaLaunchKernel", launch, 0, correlation);
        run.AddDeviceOp(id, "kernel", name, static_cast<int>(7 + Below(2)), launch + Below(100000),
                        Below(5000), correlation);
        planted.launchers[name] = id;
      }
      for (const Plan& child : op.children) self(self, child, id);
    };
    const Plan top = plan(plan, start, depth);
    emit(emit, top, parent);
    return top.end + 1 + Step();
  }

  std::mt19937 random_;
  bool coarse_;
  int64_t next_correlation_ = 1;
};

void CheckAgainst(const RandomRun::Planted& planted, const LinkResult& result) {
  const Trace& trace = result.trace;
  std::set<uint64_t> ids;
  ForEachNode(trace, [&](NodeId node) { RC_ASSERT(ids.insert(trace.source_id(node)).second); });
  for (const auto& [id, time] : planted.times) {
    const NodeId node = trace.Find(id);
    RC_ASSERT(trace.start(node) == Nanos{time.first});
    RC_ASSERT(trace.duration(node) == Nanos{time.second});
    int64_t own = time.second;
    for (const NodeId child : trace.children(node)) {
      if (trace.place(child) == Place::kHost) own -= trace.duration(child)->count;
    }
    RC_ASSERT(trace.exclusive(node) == Nanos{own});
  }
  size_t kernels = 0;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.place(node) != Place::kDevice) return;
    ++kernels;
    RC_ASSERT(trace.source_id(trace.parent(node)) ==
              planted.launchers.at(std::string(trace.name(node))));
  });
  RC_ASSERT(kernels == planted.launchers.size());
}

RC_GTEST_PROP(Link, FindsWhatWasPlanted, (uint32_t seed, bool coarse)) {
  MadeUpRun run;
  const auto planted = RandomRun(seed, coarse).Fill(run);
  const LinkResult result = LinkRun(run);
  RC_ASSERT(Count(result, HostLink::kRfId) == planted.times.size());
  RC_ASSERT(result.overhanging == 0u);
  CheckAgainst(planted, result);
}

RC_GTEST_PROP(Link, FindsItWithoutRecordFunctionIds, (uint32_t seed, bool on_host)) {
  MadeUpRun run;
  (on_host ? run.host_rf_ids : run.rf_ids) = false;
  run.external_ids = false;
  const auto planted = RandomRun(seed, /*coarse=*/false).Fill(run);
  const LinkResult result = LinkRun(run);
  RC_ASSERT(Count(result, HostLink::kAligned) == planted.times.size());
  RC_ASSERT(result.trace.stats()[Stat::kFallbackLink] == planted.times.size());
  CheckAgainst(planted, result);
}

TEST(Link, ALargePairIsQuick) {
  MadeUpRun run;
  RandomRun(7, /*coarse=*/false).Fill(run, /*steps=*/300);
  const Trace host = run.Host();
  const Trace device = run.Device();
  EXPECT_GT(host.node_count(), 10'000u);
  const LinkResult result = LinkTraces(host, device);
  EXPECT_EQ(result.host_matched() + 3, host.node_count());
}

}  // namespace
}  // namespace etude
