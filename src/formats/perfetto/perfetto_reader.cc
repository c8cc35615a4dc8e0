#include "src/formats/perfetto/perfetto_reader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/format_count.h"
#include "src/base/text/string_pool.h"
#include "src/formats/perfetto/perfetto_arguments.h"
#include "src/formats/perfetto/perfetto_events.h"
#include "src/formats/perfetto/perfetto_packets.h"
#include "src/formats/perfetto/perfetto_schema.h"
#include "src/formats/perfetto/perfetto_sequence.h"
#include "src/formats/perfetto/perfetto_slices.h"
#include "src/formats/perfetto/perfetto_tracks.h"
#include "src/formats/perfetto/perfetto_wire.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using perfetto::Arguments;
using perfetto::Delimited;
using perfetto::EventField;
using perfetto::EventType;
using perfetto::InternText;
using perfetto::PacketCutter;
using perfetto::PacketField;
using perfetto::PacketInflater;
using perfetto::Sequence;
using perfetto::SliceEvents;
using perfetto::Slices;
using perfetto::TrackEvent;
using perfetto::Tracks;
using perfetto::Varint;
using perfetto::View;
using protozero::pbf_reader;

class PerfettoReader : public TraceReader {
 public:
  PerfettoReader(std::string name, const ReadOptions& options, const RunContext& context)
      : name_(std::move(name)),
        options_(options),
        context_(context),
        cutter_(name_, context.limits),
        inflater_(context.limits),
        tracks_(strings_),
        arguments_(strings_, context.limits.depth),
        slices_(strings_),
        builder_(context.limits) {}

  Status Push(std::string_view chunk) override {
    return cutter_.Push(chunk,
                        [this](std::string_view packet) { return TakePacket(packet, false); });
  }

  Result<Trace> Finish(bool cut) override {
    ETUDE_RETURN_IF_ERROR(CheckEnd(cut));
    ETUDE_RETURN_IF_ERROR(PairSlices());
    ETUDE_RETURN_IF_ERROR(AddSlices());
    auto trace = builder_.Finish();
    if (!trace) return BadInput(name_ + ": " + trace.error().message);
    return trace;
  }

 private:
  // The messages of one packet.
  struct Packet {
    uint64_t timestamp = 0;
    std::optional<uint32_t> clock;
    uint32_t sequence = 0;
    uint32_t flags = 0;
    std::string_view event;
    std::string_view interned;
    std::string_view defaults;
    std::string_view track;
    std::string_view snapshot;
    std::string_view compressed;
    bool has_event = false;
    bool is_compressed = false;
  };

  // `unpacked`: the packet was inside a compressed one.
  Status TakePacket(std::string_view bytes, bool unpacked) {
    ++packets_;
    const size_t events = slices_.size();
    try {
      const Packet packet = ReadPacket(bytes);
      if (!packet.is_compressed) return TakeMessages(packet);
      if (unpacked) return Malformed("compressed packets inside compressed packets");
      return TakeCompressed(packet.compressed);
    } catch (const protozero::exception& error) {
      slices_.Truncate(events);
      return Malformed(error.what());
    }
  }

  Status TakeMessages(const Packet& packet) {
    Sequence& sequence = sequences_[packet.sequence];
    if ((packet.flags & perfetto::kStateCleared) != 0) sequence = Sequence();
    if (!packet.defaults.empty()) sequence.ReadDefaults(packet.defaults);
    if (!packet.interned.empty()) sequence.ReadInterned(packet.interned, strings_);
    if (!packet.snapshot.empty()) sequence.ReadSnapshot(packet.snapshot, clocks_);
    if (!packet.track.empty()) tracks_.Read(packet.track);
    if (packet.has_event) return ReadEvent(packet, sequence);
    const bool known = !packet.track.empty() || !packet.interned.empty() ||
                       !packet.defaults.empty() || !packet.snapshot.empty();
    if (!known) ++skipped_;
    return {};
  }

  Status TakeCompressed(std::string_view bytes) {
    const std::string where = cutter_.Where();
    PacketCutter cutter(where + ", unpacked", context_.limits);
    const auto take = [this](std::string_view packet) { return TakePacket(packet, true); };
    ETUDE_ASSIGN_OR_RETURN(const std::string damage,
                           inflater_.Inflate(bytes, where, [&](std::string_view chunk) {
                             return cutter.Push(chunk, take);
                           }));
    if (!damage.empty()) return Malformed(damage);
    if (!cutter.is_whole()) return Malformed("the last of its compressed packets ends early");
    return {};
  }

  Status Malformed(std::string_view what) {
    const std::string message =
        fmt::format("{}: packet {} cannot be read: {}", cutter_.Where(), packets_ - 1, what);
    if (options_.strict) return BadInput(message);
    if (malformed_++ == 0) first_malformed_ = message;
    return {};
  }

  static Packet ReadPacket(std::string_view bytes) {
    Packet packet;
    pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case Varint(PacketField::kTimestamp): packet.timestamp = reader.get_uint64(); break;
        case Varint(PacketField::kTimestampClock): packet.clock = reader.get_uint32(); break;
        case Varint(PacketField::kSequence): packet.sequence = reader.get_uint32(); break;
        case Varint(PacketField::kSequenceFlags): packet.flags |= reader.get_uint32(); break;
        case Varint(PacketField::kIncrementalStateCleared):
          if (reader.get_bool()) packet.flags |= perfetto::kStateCleared;
          break;
        case Delimited(PacketField::kTrackEvent):
          packet.event = View(reader.get_view());
          packet.has_event = true;
          break;
        case Delimited(PacketField::kInternedData):
          packet.interned = View(reader.get_view());
          break;
        case Delimited(PacketField::kDefaults): packet.defaults = View(reader.get_view()); break;
        case Delimited(PacketField::kTrackDescriptor):
          packet.track = View(reader.get_view());
          break;
        case Delimited(PacketField::kClockSnapshot):
          packet.snapshot = View(reader.get_view());
          break;
        case Delimited(PacketField::kCompressedPackets):
          packet.compressed = View(reader.get_view());
          packet.is_compressed = true;
          break;
        default: reader.skip();
      }
    }
    return packet;
  }

  Status ReadEvent(const Packet& packet, Sequence& sequence) {
    const auto time = sequence.TimeOf(packet.timestamp, packet.clock, clocks_);
    if (!time) return Malformed("its time is out of range");
    TrackEvent event{.time = time->nanos, .track = sequence.default_track(), .order = packets_};
    int32_t type = 0;
    std::string args;
    pbf_reader reader(packet.event.data(), packet.event.size());
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case Varint(EventField::kType): type = reader.get_enum(); break;
        case Varint(EventField::kTrack): event.track = reader.get_uint64(); break;
        case Varint(EventField::kNameId):
          event.name = arguments_.Text(sequence.names(), reader.get_uint64());
          break;
        case Delimited(EventField::kName):
          event.name = InternText(strings_, reader.get_view());
          break;
        case Varint(EventField::kCategoryIds):
          event.category = arguments_.Text(sequence.categories(), reader.get_uint64());
          break;
        case Delimited(EventField::kCategoryIds):
          for (const uint64_t id : reader.get_packed_uint64()) {
            event.category = arguments_.Text(sequence.categories(), id);
          }
          break;
        case Delimited(EventField::kCategories):
          event.category = InternText(strings_, reader.get_view());
          break;
        case Delimited(EventField::kAnnotations):
          if (!arguments_.Add(reader.get_view(), sequence, args)) {
            return Malformed("its annotations are nested too deeply (limit 'depth')");
          }
          break;
        default: reader.skip();
      }
    }
    event.type = static_cast<EventType>(type);
    const bool is_slice = event.type == EventType::kBegin || event.type == EventType::kEnd;
    if (!is_slice && !perfetto::IsWork(event.type, strings_.Get(event.name), args)) {
      ++skipped_;
      return {};
    }
    if (!time->is_known) ++unknown_clocks_;
    if (!args.empty()) event.args = strings_.Intern(args);
    if (slices_.size() >= 2 * context_.limits.nodes) {
      return BadInput(fmt::format("{}: more than {} slices (limit 'nodes')", cutter_.Where(),
                                  context_.limits.nodes));
    }
    slices_.Add(event);
    return {};
  }

  Status CheckEnd(bool cut) {
    if (packets_ == 0)
      return BadInput(name_ + ": found no whole packet, expected a Perfetto trace");
    if (malformed_ != 0) {
      context_.Warn(fmt::format("{}: skipped {}; the first: {}", name_,
                                FormatCount(malformed_, "malformed packet"), first_malformed_));
    }
    if (!cutter_.is_whole() || cut) {
      const std::string message = fmt::format("{}: the {} ends early", cutter_.Where(),
                                              cut ? "compressed file" : "last packet");
      if (options_.strict) return BadInput(message);
      context_.Warn(message);
      builder_.stats().Count(Stat::kTruncated);
    }
    if (foreign_bytes() != 0) {
      const std::string message =
          fmt::format("{}: {} the end of the compressed data", name_,
                      FormatCount(foreign_bytes(), "byte follows", "bytes follow"));
      if (options_.strict) return BadInput(message);
      context_.Warn(message);
      builder_.stats().Count(Stat::kTrailingData, foreign_bytes());
    }
    if (arguments_.lost_texts() != 0) {
      context_.Warn(fmt::format("{}: {} lost: the packets with their texts are missing", name_,
                                FormatCount(arguments_.lost_texts(), "name is", "names are")));
    }
    if (unknown_clocks_ != 0) {
      context_.Warn(
          fmt::format("{}: {} a clock whose offset to the trace's clock is unknown: their times "
                      "are kept unchanged",
                      name_,
                      FormatCount(unknown_clocks_, "beginning or end of a slice has",
                                  "beginnings and ends of slices have")));
    }
    return {};
  }

  Status PairSlices() {
    const uint64_t unpaired = slices_.Pair();
    if (unpaired == 0) return {};
    const std::string message =
        fmt::format("{}: {} no begin", name_,
                    FormatCount(unpaired, "end of a slice has", "ends of slices have"));
    if (options_.strict) return BadInput(message);
    context_.Warn(message);
    malformed_ += unpaired;
    return {};
  }

  // Adds the slices. Events that were not slices, or not readable, are counted after them.
  Status AddSlices() {
    builder_.info().SetFormat(TraceFormat::kPerfetto);
    builder_.info().extras.push_back(
        {.key = builder_.Intern("displayTimeUnit"), .text = builder_.Intern("\"ms\"")});
    SliceEvents events(name_, context_.limits, strings_, tracks_, builder_);
    uint64_t index = 0;
    for (const TrackEvent& slice : slices_.events()) {
      ETUDE_RETURN_IF_ERROR(events.Add(slice, index++));
    }
    if (skipped_ + malformed_ != 0) ETUDE_RETURN_IF_ERROR(events.CheckNodes());
    builder_.stats().Count(Stat::kSkippedEvent, skipped_);
    builder_.stats().Count(Stat::kMalformedElement, malformed_);
    const uint64_t all = index + skipped_ + malformed_;
    if (all != 0 && builder_.stats()[Stat::kMalformedElement] == all) {
      if (first_malformed_.empty()) return BadInput(name_ + ": found no slice that can be read");
      return BadInput(first_malformed_ +
                      (all == 1 ? "" : fmt::format(" (nor any other of {})", all)));
    }
    events.Finish();
    return {};
  }

  std::string name_;
  ReadOptions options_;
  const RunContext& context_;

  PacketCutter cutter_;
  PacketInflater inflater_;
  StringPool strings_;
  Tracks tracks_;
  Arguments arguments_;
  std::unordered_map<uint32_t, Sequence> sequences_;
  perfetto::Clocks clocks_;  // clocks of all sequences
  Slices slices_;
  TraceBuilder builder_;
  uint64_t packets_ = 0;
  uint64_t skipped_ = 0;
  uint64_t malformed_ = 0;
  uint64_t unknown_clocks_ = 0;  // events with an unknown clock
  std::string first_malformed_;
};

}  // namespace

std::unique_ptr<TraceReader> MakePerfettoReader(std::string name, const ReadOptions& options,
                                                const RunContext& context) {
  return std::make_unique<PerfettoReader>(std::move(name), options, context);
}

bool LooksLikePerfetto(std::string_view beginning) {
  constexpr int kPackets = 8;
  bool typical = false;  // whether a field that distinguishes packets from other messages was found
  for (int i = 0; i < kPackets && !beginning.empty(); ++i) {
    if (beginning.front() != perfetto::kPacketTag) return false;
    bool is_cut = false;
    try {
      const char* at = beginning.data() + 1;
      const char* end = beginning.data() + beginning.size();
      const uint64_t length = protozero::decode_varint(&at, end);
      const auto left = static_cast<uint64_t>(end - at);
      is_cut = length > left;
      pbf_reader packet(at, static_cast<size_t>(std::min(length, left)));
      while (packet.next()) {
        switch (packet.tag_and_type()) {
          case Varint(PacketField::kSequence):
          case Delimited(PacketField::kTrackEvent):
          case Delimited(PacketField::kClockSnapshot):
          case Delimited(PacketField::kCompressedPackets):
          case Delimited(PacketField::kTrackDescriptor): typical = true; break;
          default: break;
        }
        packet.skip();
      }
      if (is_cut) return typical;
      at += length;
      beginning = {at, static_cast<size_t>(end - at)};
    } catch (const protozero::exception&) {
      return typical && (i > 0 || is_cut);
    }
  }
  return typical;
}

}  // namespace etude
