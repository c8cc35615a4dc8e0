#include "src/formats/perfetto/perfetto_reader.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "perfetto_trace.pb.h"
#include "src/formats/test_support.h"
#include "src/formats/timeline/perfetto_writer.h"
#include "src/trace/trace_builder.h"
#include "tests/trace_dump.h"

namespace etude {
namespace {

using perfetto_test::TrackEvent;

// Makes traces in the way of PyTorch's writer: tracks, a table of names, all begins of a group, all
// ends.
class Pftrace {
 public:
  void Process(uint64_t uuid, int32_t pid) {
    auto* track = trace.add_packet()->mutable_track_descriptor();
    track->set_uuid(uuid);
    track->mutable_process()->set_pid(pid);
  }
  void Thread(uint64_t uuid, uint64_t parent, int32_t pid, int64_t tid) {
    auto* track = trace.add_packet()->mutable_track_descriptor();
    track->set_uuid(uuid);
    track->set_parent_uuid(parent);
    track->mutable_thread()->set_pid(pid);
    track->mutable_thread()->set_tid(tid);
  }
  TrackEvent* Event(uint64_t time, int32_t type, uint64_t track) {
    auto* packet = trace.add_packet();
    packet->set_timestamp(time);
    packet->set_trusted_packet_sequence_id(1);
    packet->mutable_track_event()->set_type(type);
    packet->mutable_track_event()->set_track_uuid(track);
    return packet->mutable_track_event();
  }
  TrackEvent* Begin(uint64_t time, uint64_t track, const std::string& name) {
    TrackEvent* event = Event(time, 1, track);
    event->set_name(name);
    return event;
  }
  void End(uint64_t time, uint64_t track) { Event(time, 2, track); }
  static void Arg(TrackEvent* event, const std::string& key, int64_t value) {
    auto* annotation = event->add_debug_annotations();
    annotation->set_name(key);
    annotation->set_int_value(value);
  }

  perfetto_test::Trace trace;
};

Result<Trace> ReadPerfetto(const std::string& bytes, size_t chunk = 1 << 20,
                           const ReadOptions& options = {}, const Limits& limits = {}) {
  RunContext context;
  context.limits = limits;
  return testing_support::ReadWith(MakePerfettoReader, bytes, chunk, options, context);
}

NodeId Named(const Trace& trace, std::string_view name) {
  NodeId found;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.name(node) == name) found = node;
  });
  return found;
}

// Returns two kernels that touch, with their launch. All begin before any ends in the file.
Pftrace PyTorch() {
  Pftrace made;
  made.Process(1, 100);
  made.Thread(2, 1, 100, 101);
  made.Process(3, 0);
  made.Thread(4, 3, 0, 7);
  auto* op = made.Begin(1000, 2, "aten::mm");
  Pftrace::Arg(op, "Record function id", 5);
  Pftrace::Arg(op, "External id", 3);
  auto* launch = made.Begin(1100, 2, "cudaLaunchKernel");
  Pftrace::Arg(launch, "cbid", 211);
  Pftrace::Arg(launch, "correlation", 9);
  made.End(1200, 2);
  made.End(1500, 2);
  for (const uint64_t begin : {2000U, 2100U, 2200U}) {
    const std::string name = begin == 2000 ? "gemm" : begin == 2100 ? "Memcpy DtoD" : "relu";
    auto* kernel = made.Begin(begin, 4, name);
    Pftrace::Arg(kernel, "device", 0);
    Pftrace::Arg(kernel, "stream", 7);
    Pftrace::Arg(kernel, "correlation", 9);
    auto* grid = kernel->add_debug_annotations();
    grid->set_name("grid");
    grid->add_array_values()->set_int_value(4);
    grid->add_array_values()->set_int_value(1);
  }
  made.End(2100, 4);
  made.End(2150, 4);
  made.End(2300, 4);
  return made;
}

TEST(PerfettoReader, ReadsWhatPyTorchWrites) {
  const std::string bytes = PyTorch().trace.SerializeAsString();
  for (const size_t chunk : {size_t{1}, size_t{7}, size_t{1} << 20}) {
    const auto trace = ReadPerfetto(bytes, chunk);
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    EXPECT_EQ(trace->info().format, TraceFormat::kPerfetto);
    ASSERT_EQ(trace->node_count(), 5u);
    const NodeId op = Named(*trace, "aten::mm");
    EXPECT_EQ(trace->kind(op), NodeKind::kOperator);
    EXPECT_EQ(trace->rf_id(op), 5u);
    EXPECT_EQ(trace->start(op), Nanos{1000});
    EXPECT_EQ(trace->duration(op), Nanos{500});
    EXPECT_EQ(trace->text(trace->lane(trace->lane_id(op)).thread), "101");
    EXPECT_EQ(trace->text(trace->lane(trace->lane_id(op)).process), "100");
    const NodeId launch = Named(*trace, "cudaLaunchKernel");
    EXPECT_EQ(trace->kind(launch), NodeKind::kRuntime);
    EXPECT_EQ(trace->parent(launch), op);
    const NodeId gemm = Named(*trace, "gemm");
    EXPECT_EQ(trace->kind(gemm), NodeKind::kKernel);
    EXPECT_EQ(trace->place(gemm), Place::kDevice);
    EXPECT_EQ(trace->duration(gemm), Nanos{100}) << "one ends where the next begins";
    EXPECT_EQ(trace->lane(trace->lane_id(gemm)).stream, 7);
    EXPECT_EQ(trace->correlation(gemm), 9);
    EXPECT_EQ(trace->kind(Named(*trace, "Memcpy DtoD")), NodeKind::kMemcpy);
    EXPECT_EQ(trace->duration(Named(*trace, "Memcpy DtoD")), Nanos{50});
    bool has_grid = false;
    for (const Extra& extra : trace->extras(gemm)) {
      if (trace->text(extra.key) == "grid") has_grid = trace->text(extra.text) == "[4, 1]";
    }
    EXPECT_TRUE(has_grid);
  }
}

TEST(PerfettoReader, ReadsWhatKinetoWrites) {
  // A track for each activity is below its thread, with its metadata as JSON members in one text.
  Pftrace made;
  made.Process(1, 0);
  made.Thread(2, 1, 0, 7);
  auto* child = made.trace.add_packet()->mutable_track_descriptor();
  child->set_uuid(3);
  child->set_parent_uuid(2);
  auto* kernel = made.Begin(10, 3, "gemm");
  auto* metadata = kernel->add_debug_annotations();
  metadata->set_name("metadata");
  metadata->set_string_value("\"device\": 0, \"stream\": 7, \"note\": \"a \\\\ b\"");
  Pftrace::Arg(kernel, "correlation_id", 4);
  made.End(30, 3);
  const auto trace = ReadPerfetto(made.trace.SerializeAsString());
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  ASSERT_EQ(trace->node_count(), 1u);
  const NodeId node = NodeId::FromIndex(0);
  EXPECT_EQ(trace->lane(trace->lane_id(node)).stream, 7);
  EXPECT_EQ(trace->correlation(node), 4);
  EXPECT_EQ(trace->kind(node), NodeKind::kKernel);
}

TEST(PerfettoReader, NamesAreInternedBySequence) {
  perfetto_test::Trace made;
  for (const uint32_t sequence : {1U, 2U}) {
    auto* packet = made.add_packet();
    packet->set_timestamp(10 * sequence);
    packet->set_trusted_packet_sequence_id(sequence);
    packet->set_sequence_flags(1);
    // The name comes after the event that needs it, which the order of fields permits.
    auto* name = packet->mutable_interned_data()->add_event_names();
    name->set_iid(1);
    name->set_text(sequence == 1 ? "one" : "two");
    packet->mutable_trace_packet_defaults()->mutable_track_event_defaults()->set_track_uuid(
        sequence);
    packet->mutable_track_event()->set_type(1);
    packet->mutable_track_event()->set_name_iid(1);
  }
  const auto trace = ReadPerfetto(made.SerializeAsString());
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_TRUE(Named(*trace, "one"));
  EXPECT_TRUE(Named(*trace, "two"));
  EXPECT_EQ(trace->stats()[Stat::kUnknownDuration], 2u) << "never ended";
}

TEST(PerfettoReader, IncrementalClocksOfASequence) {
  perfetto_test::Trace made;
  auto* first = made.add_packet();
  first->set_trusted_packet_sequence_id(1);
  first->set_sequence_flags(1);
  auto* boot = first->mutable_clock_snapshot()->add_clocks();
  boot->set_clock_id(6);
  boot->set_timestamp(5000);
  auto* own = first->mutable_clock_snapshot()->add_clocks();
  own->set_clock_id(64);
  own->set_timestamp(2);
  own->set_is_incremental(true);
  own->set_unit_multiplier_ns(1000);
  first->mutable_trace_packet_defaults()->set_timestamp_clock_id(64);
  for (const int32_t type : {1, 2}) {
    auto* packet = made.add_packet();
    packet->set_trusted_packet_sequence_id(1);
    packet->set_timestamp(3);  // after the previous one
    packet->mutable_track_event()->set_type(type);
    packet->mutable_track_event()->set_name("a");
  }
  const auto trace = ReadPerfetto(made.SerializeAsString());
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_EQ(trace->start(NodeId::FromIndex(0)), Nanos{8000});
  EXPECT_EQ(trace->duration(NodeId::FromIndex(0)), Nanos{3000});
}

// Adds a snapshot: the values of clocks at one time, in a packet of the first sequence.
void Snapshot(perfetto_test::Trace& trace, uint64_t boot, uint32_t clock, uint64_t time) {
  auto* packet = trace.add_packet();
  packet->set_trusted_packet_sequence_id(1);
  for (const auto& [id, shown] : {std::pair(6U, boot), std::pair(clock, time)}) {
    auto* reading = packet->mutable_clock_snapshot()->add_clocks();
    reading->set_clock_id(id);
    reading->set_timestamp(shown);
  }
}

// Adds a slice of 100 ns to the second sequence.
void Slice(perfetto_test::Trace& trace, uint64_t time, uint32_t clock) {
  for (const int32_t type : {1, 2}) {
    auto* packet = trace.add_packet();
    packet->set_trusted_packet_sequence_id(2);
    packet->set_timestamp(type == 1 ? time : time + 100);
    packet->set_timestamp_clock_id(clock);
    packet->mutable_track_event()->set_type(type);
    packet->mutable_track_event()->set_name("a");
  }
}

struct ReadTimes {
  std::vector<int64_t> starts;
  std::vector<std::string> warnings;
};

ReadTimes TimesOf(const perfetto_test::Trace& made) {
  ReadTimes read;
  RunContext context;
  context.warn = [&](std::string_view text) { read.warnings.emplace_back(text); };
  const auto trace = testing_support::ReadWith(MakePerfettoReader, made.SerializeAsString(),
                                               1 << 20, ReadOptions(), context);
  if (!trace) return read;
  ForEachNode(*trace, [&](NodeId node) { read.starts.push_back(trace->start(node)->count); });
  return read;
}

TEST(PerfettoReader, ClocksOfAllSequences) {
  for (const uint32_t clock : {3U, 63U, 128U}) {
    perfetto_test::Trace made;
    Snapshot(made, 1'000'000, clock, 0);
    Snapshot(made, 1'010'001, clock, 10'000);
    Slice(made, 500, clock);
    Slice(made, 20'000, clock);
    Slice(made, 1'000'600, 6);
    const ReadTimes read = TimesOf(made);
    EXPECT_EQ(read.starts, (std::vector<int64_t>{1'000'500, 1'000'600, 1'020'001})) << clock;
    EXPECT_TRUE(read.warnings.empty()) << read.warnings.front();
  }
}

TEST(PerfettoReader, ClocksThatNothingRelatesToTheTracesAreSaid) {
  for (const uint32_t clock : {3U, 64U, 127U}) {
    perfetto_test::Trace made;
    if (clock != 3) Snapshot(made, 1'000'000, clock, 0);  // a snapshot of another sequence
    Slice(made, 500, clock);
    const ReadTimes read = TimesOf(made);
    EXPECT_EQ(read.starts, std::vector<int64_t>{500}) << clock;
    ASSERT_EQ(read.warnings.size(), 1u) << clock;
    EXPECT_NE(read.warnings.front().find("2 beginnings and ends of slices have a clock"),
              std::string::npos);
  }
}

TEST(PerfettoReader, OurOwnTimelinesComeBack) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kKineto);
  NodeRow row{.source_id = 0, .kind = NodeKind::kOperator, .place = Place::kHost};
  row.name = builder.Intern("aten::\"mm\"");
  row.lane = builder.InternLane({.thread = builder.Intern("11")});
  row.start = Nanos{1'000'000'001};
  row.duration = Nanos{500};
  row.rf_id = 7;
  builder.AddNode(row);
  row = {.source_id = 1, .kind = NodeKind::kMemset, .place = Place::kDevice};
  row.name = builder.Intern("fill");
  row.lane = builder.InternLane({.device = 1, .stream = 20});
  row.start = Nanos{1'000'000'100};
  row.duration = Nanos{0};
  row.correlation = 3;
  builder.AddNode(row);
  const Trace trace = builder.Finish().value();
  const TimelinePart part{.trace = &trace, .name = "rank 0"};
  std::string bytes;
  ASSERT_TRUE(WritePerfettoTimeline({&part, 1}, [&](std::string_view piece) {
    bytes += piece;
    return Status();
  }));
  EXPECT_EQ(DetectFileKind(bytes), FileKind::kPerfetto);
  const auto back = ReadPerfetto(bytes);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  ASSERT_EQ(back->node_count(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const NodeId node = NodeId::FromIndex(i);
    EXPECT_EQ(back->name(node), trace.name(node));
    EXPECT_EQ(back->kind(node), trace.kind(node));
    EXPECT_EQ(back->place(node), trace.place(node));
    EXPECT_EQ(back->start(node), trace.start(node));
    EXPECT_EQ(back->duration(node), trace.duration(node));
    EXPECT_EQ(back->rf_id(node), trace.rf_id(node));
    EXPECT_EQ(back->correlation(node), trace.correlation(node));
  }
  EXPECT_EQ(back->lane(back->lane_id(NodeId::FromIndex(1))), (Lane{.device = 1, .stream = 20}));
}

TEST(PerfettoReader, DamageIsCountedOrRefused) {
  const std::string whole = PyTorch().trace.SerializeAsString();
  const std::string cut = whole.substr(0, whole.size() - 3);
  const auto kept = ReadPerfetto(cut);
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->stats()[Stat::kTruncated], 1u);
  EXPECT_FALSE(ReadPerfetto(cut, 100, {.strict = true}).has_value());

  // A packet whose event claims more bytes than it has.
  const std::string bad("\x0a\x03\x5a\x7f\x08", 5);
  const auto skipped = ReadPerfetto(whole + bad);
  ASSERT_TRUE(skipped.has_value());
  EXPECT_EQ(skipped->node_count(), 5u);
  EXPECT_EQ(skipped->stats()[Stat::kMalformedElement], 1u);
  EXPECT_FALSE(ReadPerfetto(whole + bad, 100, {.strict = true}).has_value());

  EXPECT_FALSE(ReadPerfetto(whole + "no packet").has_value());
  EXPECT_FALSE(ReadPerfetto("").has_value());
  EXPECT_FALSE(ReadPerfetto(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12))
                   .has_value());
}

TEST(PerfettoReader, AnnotationsInsideEachOtherEndAtTheLimit) {
  perfetto_test::DebugAnnotation annotation;
  annotation.set_int_value(1);
  std::string bytes = annotation.SerializeAsString();
  const auto varint = [](size_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    return out + static_cast<char>(value);
  };
  for (int i = 0; i < 1000; ++i) bytes = "\x62" + varint(bytes.size()) + bytes;
  bytes = "\x22" + varint(bytes.size()) + bytes;  // debug_annotations
  bytes = "\x48\x01" + bytes;                     // type: begin
  bytes = "\x5a" + varint(bytes.size()) + bytes;  // track_event
  bytes = "\x0a" + varint(bytes.size()) + bytes;  // packet
  const auto trace = ReadPerfetto(PyTorch().trace.SerializeAsString() + bytes);
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->stats()[Stat::kMalformedElement], 1u);
}

std::string Deflated(const std::string& bytes) {
  std::string out(compressBound(bytes.size()), '\0');
  uLongf size = out.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(out.data()), &size,
                     reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
            Z_OK);
  out.resize(size);
  return out;
}

// Returns a packet with these bytes as its compressed packets.
std::string CompressedPacket(const std::string& deflated) {
  perfetto_test::Trace trace;
  trace.add_packet()->set_compressed_packets(deflated);
  return trace.SerializeAsString();
}

// Returns the packets of a trace, `count` at a time in compressed packets.
std::string Compressed(const perfetto_test::Trace& trace, int count) {
  std::string bytes;
  for (int first = 0; first < trace.packet_size(); first += count) {
    perfetto_test::Trace part;
    for (int i = first; i < std::min(first + count, trace.packet_size()); ++i) {
      *part.add_packet() = trace.packet(i);
    }
    bytes += CompressedPacket(Deflated(part.SerializeAsString()));
  }
  return bytes;
}

TEST(PerfettoReader, CompressedPacketsAreThePacketsInThem) {
  const perfetto_test::Trace made = PyTorch().trace;
  const auto plain = ReadPerfetto(made.SerializeAsString());
  ASSERT_TRUE(plain.has_value());
  for (const int count : {1, 4, 1000}) {
    const std::string bytes = Compressed(made, count);
    EXPECT_TRUE(LooksLikePerfetto(bytes));
    for (const size_t chunk : {size_t{1}, size_t{13}, size_t{1} << 20}) {
      const auto trace = ReadPerfetto(bytes, chunk, {.strict = true});
      ASSERT_TRUE(trace.has_value()) << trace.error().message;
      EXPECT_EQ(testing_dump::NodeTexts(*trace), testing_dump::NodeTexts(*plain));
      EXPECT_EQ(trace->stats()[Stat::kMalformedElement], 0u);
    }
  }
}

// Each of these adds one malformed element to a valid trace, which is an error with --strict.
TEST(PerfettoReader, DamageInCompressedPackets) {
  const std::string whole = PyTorch().trace.SerializeAsString();
  const std::string deflated = Deflated(whole);
  const std::string cut_inside = whole.substr(0, whole.size() - 3);
  for (const std::string& bad :
       {deflated.substr(0, 20), deflated + "more", std::string("no zlib"), std::string(),
        Deflated("\x0a\x05\x40"), Deflated(CompressedPacket(deflated))}) {
    const auto trace = ReadPerfetto(whole + CompressedPacket(bad));
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    EXPECT_EQ(trace->stats()[Stat::kMalformedElement], 1u) << bad.size();
    EXPECT_GE(trace->node_count(), 5u);
    EXPECT_FALSE(ReadPerfetto(whole + CompressedPacket(bad), 100, {.strict = true}).has_value());
  }
  const auto cut = ReadPerfetto(CompressedPacket(Deflated(cut_inside)));
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->node_count(), 5u) << "what came before the cut";
  EXPECT_FALSE(ReadPerfetto(whole + CompressedPacket(Deflated("no packet"))).has_value());
}

TEST(PerfettoReader, CompressionBombsEndAtALimit) {
  // Empty packets have two bytes each.
  std::string many;
  for (int i = 0; i < 50'000; ++i) many.append("\x0a\x00", 2);
  const std::string bomb = CompressedPacket(Deflated(many));
  EXPECT_TRUE(ReadPerfetto(bomb).has_value());
  Limits limits;
  limits.ratio = 10;
  limits.ratio_grace_bytes = 70'000;
  const auto expands = ReadPerfetto(bomb, 100, {}, limits);
  ASSERT_FALSE(expands.has_value());
  EXPECT_NE(expands.error().message.find("limit 'ratio'"), std::string::npos);
  limits = Limits();
  limits.total_bytes = 99'999;
  EXPECT_FALSE(ReadPerfetto(bomb, 100, {}, limits).has_value());
  limits.total_bytes = 100'000;
  EXPECT_TRUE(ReadPerfetto(bomb, 100, {}, limits).has_value());
  EXPECT_FALSE(ReadPerfetto(bomb + bomb, 100, {}, limits).has_value()) << "the sum counts";
}

TEST(LooksLikePerfetto, TellsItFromOtherFiles) {
  EXPECT_TRUE(LooksLikePerfetto(PyTorch().trace.SerializeAsString()));
  const std::string large = CompressedPacket(std::string(1000, 'x'));
  EXPECT_TRUE(LooksLikePerfetto(large.substr(0, 100))) << "its first packet is not whole yet";
  EXPECT_FALSE(LooksLikePerfetto(""));
  EXPECT_FALSE(LooksLikePerfetto("{\"traceEvents\": []}"));
  // A Chakra trace whose metadata has ten bytes, because its version has eight.
  EXPECT_FALSE(
      LooksLikePerfetto(std::string("\x0a\x0a\x08"
                                    "1.0.0-a1",
                                    11)));
}

}  // namespace
}  // namespace etude
