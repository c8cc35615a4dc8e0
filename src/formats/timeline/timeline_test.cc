#include "src/formats/timeline/timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "perfetto_trace.pb.h"
#include "src/formats/kineto/kineto_reader.h"
#include "src/formats/perfetto/perfetto_reader.h"
#include "src/formats/timeline/chrome_writer.h"
#include "src/formats/timeline/perfetto_writer.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using nlohmann::json;

class Sketch {
 public:
  Sketch() { builder.info().SetFormat(TraceFormat::kLinked); }

  NodeRow& Row(uint64_t id, std::string_view name, NodeKind kind, int64_t start, int64_t duration) {
    row = NodeRow();
    row.source_id = id;
    row.name = builder.Intern(name);
    row.kind = kind;
    row.place = Place::kHost;
    row.start = Nanos{start};
    row.duration = Nanos{duration};
    row.lane = builder.InternLane({.thread = builder.Intern("11")});
    return row;
  }
  NodeRow& OnStream(int32_t stream) {
    row.place = Place::kDevice;
    row.lane = builder.InternLane({.device = 0, .stream = stream});
    return row;
  }
  NodeId Add() { return builder.AddNode(row); }
  Trace Finish() { return builder.Finish().value(); }

  TraceBuilder builder;
  NodeRow row;
};

// An operator with a hostile name, its kernel on stream 7, and a kernel on stream 8 that waits.
Trace Small() {
  Sketch sketch;
  sketch.Row(1, "op \"<&>\n\x01é", NodeKind::kOperator, 1000, 500).rf_id = 5;
  sketch.Add();
  sketch.Row(2, "gemm", NodeKind::kKernel, 1200, 100).parent = 1;
  sketch.OnStream(7).correlation = 9;
  sketch.Add();
  sketch.Row(3, "gemm", NodeKind::kKernel, 1400, 50);
  sketch.OnStream(8);
  const NodeId last = sketch.Add();
  sketch.builder.AddDep(last, 2, DepKind::kSync);
  sketch.builder.AddExtra(
      last, {.key = sketch.builder.Intern("grid"), .text = sketch.builder.Intern("[1, 2, NaN]")});
  sketch.row = NodeRow{.source_id = 4, .kind = NodeKind::kOperator};
  sketch.Add();
  return sketch.Finish();
}

std::string Chrome(const std::vector<TimelinePart>& parts, TimelineReport* report = nullptr) {
  std::string text;
  const auto written = WriteChromeTimeline(parts, [&](std::string_view bytes) {
    text += bytes;
    return Status();
  });
  EXPECT_TRUE(written.has_value());
  if (report != nullptr) *report = *written;
  return text;
}

std::string Perfetto(const std::vector<TimelinePart>& parts) {
  std::string bytes;
  const auto written = WritePerfettoTimeline(parts, [&](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  EXPECT_TRUE(written.has_value());
  return bytes;
}

TEST(PlanTimeline, TracksAreThreadsThenStreams) {
  const Trace trace = Small();
  const TimelinePlan plan = PlanTimeline(trace);
  EXPECT_EQ(plan.tracks,
            (std::vector<std::string>{"thread 11", "device 0 stream 7", "device 0 stream 8"}));
  EXPECT_EQ(plan.untimed, 1u);
  ASSERT_EQ(plan.flows.size(), 2u);
  EXPECT_EQ(plan.flows[0].arrow, TimelinePlan::Arrow::kLaunch);
  EXPECT_EQ(plan.flows[1].arrow, TimelinePlan::Arrow::kSync);
}

TEST(PlanTimeline, WhatOverlapsWithoutNestingGetsATrackBeside) {
  Sketch sketch;
  sketch.Row(1, "a", NodeKind::kOperator, 0, 100);
  sketch.Add();
  sketch.Row(2, "inside", NodeKind::kOperator, 10, 20);
  sketch.Add();
  sketch.Row(3, "across", NodeKind::kOperator, 50, 100);
  sketch.Add();
  sketch.Row(4, "after", NodeKind::kOperator, 100, 10);
  sketch.Add();
  sketch.Row(5, "empty, at the end", NodeKind::kOperator, 110, 0);
  sketch.Add();
  const Trace trace = sketch.Finish();
  const TimelinePlan plan = PlanTimeline(trace);
  EXPECT_EQ(plan.tracks, (std::vector<std::string>{"thread 11", "thread 11 (2)"}));
  EXPECT_EQ(plan.split_tracks, 1u);
  std::map<uint64_t, uint32_t> track_of;
  for (const auto& slice : plan.slices) track_of[trace.source_id(slice.node)] = slice.track;
  EXPECT_EQ(track_of, (std::map<uint64_t, uint32_t>{{1, 0}, {2, 0}, {3, 1}, {4, 0}, {5, 0}}));
}

TEST(PlanTimeline, CrowdsAreCountedNotDrawn) {
  Sketch sketch;
  for (int64_t i = 0; i < 200; ++i) {
    sketch.Row(static_cast<uint64_t>(i), "k", NodeKind::kOperator, i, 1000);
    sketch.Add();
  }
  const TimelinePlan plan = PlanTimeline(sketch.Finish());
  EXPECT_EQ(plan.slices.size(), kMostLevels);
  EXPECT_EQ(plan.crowded, 200 - kMostLevels);
}

TEST(PlanTimeline, ArrowsNeverGoBack) {
  Sketch sketch;
  sketch.Row(1, "early", NodeKind::kOperator, 0, 10);
  const NodeId early = sketch.Add();
  sketch.Row(2, "late", NodeKind::kKernel, 50, 10);
  sketch.OnStream(7);
  sketch.Add();
  sketch.builder.AddDep(early, 2, DepKind::kData);
  const TimelinePlan plan = PlanTimeline(sketch.Finish());
  EXPECT_TRUE(plan.flows.empty());
  EXPECT_EQ(plan.backward, 1u);
}

TEST(ChromeTimeline, IsStrictJsonWithAllThatIsKnown) {
  const Trace trace = Small();
  TimelinePart part{.trace = &trace, .name = "rank \"3\"", .pid = 3, .offset = Nanos{1000}};
  part.counters.push_back(
      {.name = "queue", .unit = Counter::Unit::kCount, .points = {{Nanos{1000}, 2}}});
  TimelineReport report;
  const json document = json::parse(Chrome({part}, &report));
  EXPECT_EQ(report.slices, 3u);
  EXPECT_EQ(report.untimed, 1u);
  std::map<std::string, std::vector<json>> by_phase;
  for (const json& event : document["traceEvents"]) by_phase[event["ph"]].push_back(event);
  ASSERT_EQ(by_phase["X"].size(), 3u);
  const json& op = by_phase["X"][0];
  EXPECT_EQ(op["name"], "op \"<&>\n\x01é");
  EXPECT_EQ(op["cat"], "cpu_op");
  EXPECT_EQ(op["pid"], 3);
  EXPECT_EQ(op["ts"], 0);
  EXPECT_EQ(op["dur"], 0.5);
  EXPECT_EQ(op["args"]["Record function id"], 5);
  EXPECT_EQ(by_phase["X"][1]["args"]["correlation"], 9);
  EXPECT_EQ(by_phase["X"][2]["args"]["grid"], "[1, 2, NaN]") << "no bare NaN";
  ASSERT_EQ(by_phase["s"].size(), 2u);
  EXPECT_EQ(by_phase["s"][1]["ts"], 0.299) << "within the kernel that ends at 300 ns";
  EXPECT_EQ(by_phase["f"][1]["ts"], 0.4);
  EXPECT_EQ(by_phase["s"][1]["id"], by_phase["f"][1]["id"]);
  EXPECT_EQ(by_phase["C"][0]["args"]["value"], 2);
  EXPECT_EQ(by_phase["M"][0]["args"]["name"], "rank \"3\"");
}

TEST(PerfettoTimeline, GeneratedCodeReadsIt) {
  const Trace trace = Small();
  TimelinePart part{.trace = &trace, .name = "rank 3", .pid = 3};
  part.counters.push_back(
      {.name = "queue", .unit = Counter::Unit::kBytes, .points = {{Nanos{1000}, -2}}});
  perfetto_test::Trace decoded;
  ASSERT_TRUE(decoded.ParseFromString(Perfetto({part})));
  std::map<uint64_t, std::string> tracks;
  std::map<uint64_t, std::string> names;
  std::map<uint64_t, std::string> keys;
  std::vector<std::tuple<std::string, int, uint64_t, std::string>>
      events;  // track, type, time, name
  uint64_t leaves = 0;
  uint64_t enters = 0;
  for (const auto& packet : decoded.packet()) {
    EXPECT_EQ(packet.trusted_packet_sequence_id(), 1u);
    if (packet.has_track_descriptor()) {
      const auto& track = packet.track_descriptor();
      tracks[track.uuid()] = track.name();
      if (track.name() == "rank 3") {
        EXPECT_EQ(track.process().pid(), 4);
      } else {
        EXPECT_EQ(tracks[track.parent_uuid()], "rank 3");
      }
      if (track.name() == "queue") {
        EXPECT_EQ(track.counter().unit(), 3);
      }
    }
    for (const auto& entry : packet.interned_data().event_names())
      names[entry.iid()] = entry.text();
    for (const auto& entry : packet.interned_data().debug_annotation_names()) {
      keys[entry.iid()] = entry.text();
    }
    if (!packet.has_track_event()) continue;
    const auto& event = packet.track_event();
    events.emplace_back(tracks[event.track_uuid()], event.type(), packet.timestamp(),
                        names[event.name_iid()]);
    for (const uint64_t flow : event.flow_ids()) leaves |= uint64_t{1} << flow;
    for (const uint64_t flow : event.terminating_flow_ids()) enters |= uint64_t{1} << flow;
    for (const auto& annotation : event.debug_annotations()) {
      if (keys[annotation.name_iid()] == "correlation") {
        EXPECT_EQ(annotation.int_value(), 9);
      }
    }
    if (event.type() == 4) {
      EXPECT_EQ(event.counter_value(), -2);
    }
  }
  using Row = std::tuple<std::string, int, uint64_t, std::string>;
  EXPECT_EQ(events, (std::vector<Row>{{"thread 11", 1, 1000, "op \"<&>\n\x01é"},
                                      {"thread 11", 2, 1500, ""},
                                      {"device 0 stream 7", 1, 1200, "gemm"},
                                      {"device 0 stream 7", 2, 1300, ""},
                                      {"device 0 stream 8", 1, 1400, "gemm"},
                                      {"device 0 stream 8", 2, 1450, ""},
                                      {"queue", 4, 1000, ""}}));
  EXPECT_EQ(leaves, 6u);
  EXPECT_EQ(enters, 6u);
}

TEST(PerfettoTimeline, TimesBelowZeroMoveTheTimeline) {
  Sketch sketch;
  sketch.Row(1, "a", NodeKind::kOperator, -50, 10);
  sketch.Add();
  sketch.Row(2, "b", NodeKind::kOperator, 0, 10);
  sketch.Add();
  const Trace trace = sketch.Finish();
  perfetto_test::Trace decoded;
  ASSERT_TRUE(decoded.ParseFromString(Perfetto({{.trace = &trace, .name = "x"}})));
  std::vector<uint64_t> times;
  for (const auto& packet : decoded.packet()) {
    if (packet.has_track_event()) times.push_back(packet.timestamp());
  }
  EXPECT_EQ(times, (std::vector<uint64_t>{0, 10, 50, 60}));
}

// Kinds without a category in the profiler, and communication with names unlike PyTorch's.
Trace ManyKinds() {
  Sketch sketch;
  int64_t now = 0;
  const auto add = [&](std::string_view name, NodeKind kind, Place place, bool has_end = true) {
    sketch.Row(static_cast<uint64_t>(now), name, kind, now, 50);
    if (!has_end) sketch.row.duration.reset();
    if (place == Place::kDevice) sketch.OnStream(7);
    sketch.row.place = place;
    now += 100;
    return sketch.Add();
  };
  const auto text = [&](std::string_view word) { return sketch.builder.Intern(word); };
  add("aten::mm", NodeKind::kOperator, Place::kHost);
  add("gemm", NodeKind::kKernel, Place::kDevice);
  add("wait", NodeKind::kSync, Place::kHost);
  add("wait", NodeKind::kSync, Place::kDevice);
  add("matmul", NodeKind::kCompute, Place::kDevice);
  add("matmul", NodeKind::kCompute, Place::kHost);
  add("load", NodeKind::kMemLoad, Place::kUnknown);
  const Comm named{.type = CollectiveType::kAllReduce,
                   .name = text("allreduce"),
                   .group = text("2"),
                   .dtype = DType::kBFloat16,
                   .bytes = Bytes{32},
                   .in_elements = 16,
                   .out_elements = 16};
  const Comm silent{.type = CollectiveType::kAllGather, .bytes = Bytes{4096}, .root = 1};
  const Comm message{.bytes = Bytes{64}, .dst = 3, .tag = 5, .priority = 2};
  for (const Place place : {Place::kHost, Place::kDevice, Place::kUnknown}) {
    for (const std::string_view name : {"gloo:all_reduce", "record_param_comms", "AR.17"}) {
      sketch.builder.SetComm(add(name, NodeKind::kCollective, place), named);
    }
    sketch.builder.SetComm(add("AG.18", NodeKind::kCollective, place), silent);
    // Its duration is unknown.
    sketch.builder.SetComm(add("gloo:all_gather", NodeKind::kCollective, place, false), silent);
    sketch.builder.SetComm(add("COMM_SEND_NODE", NodeKind::kSend, place), message);
  }
  return sketch.Finish();
}

void ExpectSameWork(const Trace& read, const Trace& trace) {
  ASSERT_EQ(read.node_count(), trace.node_count());
  std::map<std::optional<Nanos>, NodeId> nodes;
  ForEachNode(read, [&](NodeId node) { nodes[read.start(node)] = node; });
  ForEachNode(trace, [&](NodeId node) {
    const NodeId again = nodes[trace.start(node)];
    ASSERT_TRUE(again);
    SCOPED_TRACE(std::string(trace.name(node)));
    EXPECT_EQ(read.name(again), trace.name(node));
    EXPECT_EQ(Name(read.kind(again)), Name(trace.kind(node)));
    EXPECT_EQ(Name(read.place(again)), Name(trace.place(node)));
    EXPECT_EQ(read.duration(again), trace.duration(node));
    EXPECT_EQ(EventCategory(read, again), EventCategory(trace, node));
    const Comm* comm = trace.comm(node);
    ASSERT_EQ(read.comm(again) == nullptr, comm == nullptr);
    if (comm == nullptr) return;
    const Comm& said = *read.comm(again);
    EXPECT_EQ(Name(said.type), Name(comm->type));
    EXPECT_EQ(read.text(said.name), trace.text(comm->name));
    EXPECT_EQ(read.text(said.group), trace.text(comm->group));
    EXPECT_EQ(said.dtype, comm->dtype);
    EXPECT_EQ(said.bytes, comm->bytes);
    EXPECT_EQ(said.in_elements, comm->in_elements);
    EXPECT_EQ(said.out_elements, comm->out_elements);
    EXPECT_EQ(said.root, comm->root);
    EXPECT_EQ(said.dst, comm->dst);
    EXPECT_EQ(said.tag, comm->tag);
    EXPECT_EQ(said.priority, comm->priority);
    for (const Extra& extra : read.extras(again)) {
      EXPECT_TRUE(read.text(extra.key).starts_with(kEventExtraPrefix)) << read.text(extra.key);
    }
  });
}

Result<Trace> ReadAgain(std::unique_ptr<TraceReader> reader, const std::string& bytes) {
  ETUDE_RETURN_IF_ERROR(reader->Push(bytes));
  return reader->Finish(false);
}

TEST(Timeline, KindsAndCommunicationComeBack) {
  const Trace trace = ManyKinds();
  const std::vector<TimelinePart> parts = {{.trace = &trace, .name = "rank 0", .pid = 0}};
  const RunContext context;
  const auto chrome = ReadAgain(MakeKinetoReader("t.json", {}, context), Chrome(parts));
  ASSERT_TRUE(chrome.has_value());
  ExpectSameWork(*chrome, trace);
  const auto perfetto = ReadAgain(MakePerfettoReader("t.pftrace", {}, context), Perfetto(parts));
  ASSERT_TRUE(perfetto.has_value());
  ExpectSameWork(*perfetto, trace);
}

}  // namespace
}  // namespace etude
