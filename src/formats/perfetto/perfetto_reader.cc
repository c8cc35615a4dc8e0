#include "src/formats/perfetto/perfetto_reader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/text/format_count.h"
#include "src/base/text/string_pool.h"
#include "src/formats/json/json_text.h"
#include "src/formats/kineto/kineto_reader.h"
#include "src/formats/perfetto/perfetto_arguments.h"
#include "src/formats/perfetto/perfetto_packets.h"
#include "src/formats/perfetto/perfetto_schema.h"
#include "src/formats/perfetto/perfetto_sequence.h"
#include "src/formats/perfetto/perfetto_tracks.h"
#include "src/formats/perfetto/perfetto_wire.h"
#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/trace/words/memory_event.h"
#include "src/trace/words/operator_name.h"

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
using perfetto::Tracks;
using perfetto::Varint;
using perfetto::View;
using protozero::pbf_reader;

// What an event without a category is, by the arguments that PyTorch gives it: its writer has none
// for categories. The first row that fits.
struct UsualCategory {
  std::string_view arg;          // that the event has
  std::string_view name_prefix;  // of the event
  std::string_view category;
};
constexpr UsualCategory kUsualCategories[] = {
    {"cuda_sync_kind", "", "cuda_sync"},  {"stream", "Memcpy", "gpu_memcpy"},
    {"stream", "Memset", "gpu_memset"},   {"stream", "", "kernel"},
    {"cbid", "", "cuda_runtime"},         {"Record function id", kStepMark, "user_annotation"},
    {"Record function id", "", "cpu_op"},
};

class PerfettoReader : public TraceReader {
 public:
  PerfettoReader(std::string name, const ReadOptions& options, const RunContext& context)
      : name_(std::move(name)),
        options_(options),
        context_(context),
        cutter_(name_, context.limits),
        inflater_(context.limits),
        tracks_(strings_),
        arguments_(strings_, context.limits.depth) {
    inner_context_ = context;
    inner_context_.warn = nullptr;
    inner_context_.progress = nullptr;
    // What was read here is whole.
    inner_ = MakeProfileReader(name_, TraceFormat::kPerfetto, {.strict = false}, inner_context_);
  }

  Status Push(std::string_view chunk) override {
    return cutter_.Push(chunk,
                        [this](std::string_view packet) { return TakePacket(packet, false); });
  }

  Result<Trace> Finish(bool cut) override {
    ETUDE_RETURN_IF_ERROR(CheckEnd(cut));
    ETUDE_RETURN_IF_ERROR(PairEvents());
    ETUDE_RETURN_IF_ERROR(EmitEvents());
    return inner_->Finish(cut || !cutter_.is_whole());
  }

 private:
  // An event of a track, or a slice after pairing.
  struct Event {
    int64_t time = 0;
    uint64_t track = 0;
    uint64_t order = 0;  // in the file
    EventType type = EventType::kBegin;
    StringId name;
    StringId category;
    StringId args;  // members of a JSON object
    int64_t end = 0;
    bool has_end = false;
    bool ends_at_once = false;  // the end of a slice that began right before it in the file
  };

  // The messages of a packet.
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

  // `unpacked`: it stood in another one.
  Status TakePacket(std::string_view bytes, bool unpacked) {
    ++packets_;
    const size_t events = events_.size();
    try {
      const Packet packet = ReadPacket(bytes);
      if (!packet.is_compressed) return TakeMessages(packet);
      if (unpacked) return Malformed("compressed packets inside compressed packets");
      return TakeCompressed(packet.compressed);
    } catch (const protozero::exception& error) {
      events_.resize(events);
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
    Event event{.time = time->nanos, .track = sequence.default_track(), .order = packets_};
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
            return Malformed("its annotations are nested too deep (limit 'depth')");
          }
          break;
        default: reader.skip();
      }
    }
    event.type = static_cast<EventType>(type);
    const bool is_slice = event.type == EventType::kBegin || event.type == EventType::kEnd;
    if (!is_slice && !IsWork(event, args)) {
      ++skipped_;
      return {};
    }
    if (!time->is_known) ++unknown_clocks_;
    if (!args.empty()) event.args = strings_.Intern(args);
    if (event.type == EventType::kEnd && !events_.empty()) {
      const Event& last = events_.back();
      event.ends_at_once = last.type == EventType::kBegin && last.track == event.track &&
                           last.time == event.time && last.order + 1 == event.order;
    }
    if (events_.size() >= 2 * context_.limits.nodes) {
      return BadInput(fmt::format("{}: more than {} slices (limit 'nodes')", cutter_.Where(),
                                  context_.limits.nodes));
    }
    events_.push_back(event);
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
    }
    if (foreign_bytes() != 0) {
      const std::string message =
          fmt::format("{}: {} the end of the compressed data", name_,
                      FormatCount(foreign_bytes(), "byte follows", "bytes follow"));
      if (options_.strict) return BadInput(message);
      context_.Warn(message);
      inner_->set_foreign_bytes(foreign_bytes());
    }
    if (arguments_.lost_texts() != 0) {
      context_.Warn(fmt::format("{}: {} lost: the packets with their texts are not there", name_,
                                FormatCount(arguments_.lost_texts(), "name is", "names are")));
    }
    if (unknown_clocks_ != 0) {
      context_.Warn(
          fmt::format("{}: {} a clock of which no packet before says how it stands to the "
                      "trace's: times by it are kept as they are",
                      name_,
                      FormatCount(unknown_clocks_, "beginning or end of a slice has",
                                  "beginnings and ends of slices have")));
    }
    return {};
  }

  // By track and time. Where the events of a track stand in the order of time, ends and beginnings
  // at one time are in order too. Where not, as with writers that give all beginnings, then all
  // ends, what ends then does so before anything begins.
  void SortEvents() {
    std::ranges::stable_sort(events_, {}, &Event::track);
    for (size_t begin = 0; begin < events_.size();) {
      size_t end = begin + 1;
      bool ordered = true;
      while (end < events_.size() && events_[end].track == events_[begin].track) {
        ordered = ordered && events_[end - 1].time <= events_[end].time;
        ++end;
      }
      if (!ordered) {
        std::stable_sort(
            events_.begin() + static_cast<ptrdiff_t>(begin),
            events_.begin() + static_cast<ptrdiff_t>(end), [](const Event& a, const Event& b) {
              const auto rank = [](const Event& event) {
                const bool first = event.type == EventType::kEnd && !event.ends_at_once;
                return std::pair(event.time, first ? 0 : 1);
              };
              return rank(a) < rank(b);
            });
      }
      begin = end;
    }
  }

  // Each end belongs to the innermost open slice of its track.
  Status PairEvents() {
    SortEvents();
    std::vector<size_t> open;
    uint64_t unpaired = 0;
    for (size_t i = 0; i < events_.size(); ++i) {
      if (i != 0 && events_[i].track != events_[i - 1].track) open.clear();
      if (events_[i].type == EventType::kBegin) {
        open.push_back(i);
      } else if (events_[i].type == EventType::kInstant) {
        continue;
      } else if (open.empty()) {
        ++unpaired;
      } else {
        Event& begin = events_[open.back()];
        begin.end = events_[i].time;
        begin.has_end = true;
        if (events_[i].args) begin.args = Joined(begin.args, events_[i].args);
        open.pop_back();
      }
    }
    std::erase_if(events_, [](const Event& event) { return event.type == EventType::kEnd; });
    std::ranges::sort(events_, {},
                      [](const Event& event) { return std::pair(event.time, event.order); });
    if (unpaired == 0) return {};
    const std::string message =
        fmt::format("{}: {} no beginning", name_,
                    FormatCount(unpaired, "end of a slice has", "ends of slices have"));
    if (options_.strict) return BadInput(message);
    context_.Warn(message);
    malformed_ += unpaired;
    return {};
  }

  StringId Joined(StringId a, StringId b) {
    if (!a) return b;
    return strings_.Intern(std::string(strings_.Get(a)) + ", " + std::string(strings_.Get(b)));
  }

  static bool HasKey(std::string_view args, std::string_view key) {
    return args.find("\"" + std::string(key) + "\":") != std::string_view::npos;
  }

  // Whether an event that is no slice is one of Etude's that stand for more than a mark: work
  // without a known end, or what an allocator did.
  bool IsWork(const Event& event, std::string_view args) const {
    return event.type == EventType::kInstant &&
           (HasKey(args, kEtKindAttr) || strings_.Get(event.name) == kMemoryEvent);
  }

  std::string_view CategoryOf(const Event& event, std::string_view args) const {
    if (event.category) return strings_.Get(event.category);
    for (const UsualCategory& row : kUsualCategories) {
      if (HasKey(args, row.arg) && strings_.Get(event.name).starts_with(row.name_prefix)) {
        return row.category;
      }
    }
    return {};
  }

  // Passes the slices on as the Chrome events that they stand for.
  Status EmitEvents() {
    constexpr size_t kFlushBytes = size_t{1} << 20;
    std::unordered_map<uint64_t, Tracks::Lane> lanes;
    std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
    bool first = true;
    const auto put = [&](std::string_view text) -> Status {
      if (!first) out += ",\n";
      first = false;
      out += text;
      if (out.size() < kFlushBytes) return {};
      const Status status = inner_->Push(out);
      out.clear();
      return status;
    };
    for (const Event& event : events_) {
      const auto [at, is_new] = lanes.try_emplace(event.track);
      if (is_new) at->second = tracks_.LaneOf(event.track);
      const Tracks::Lane& lane = at->second;
      const std::string_view args = strings_.Get(event.args);
      std::string text =
          event.type == EventType::kInstant ? R"({"ph": "i", "name": )" : R"({"ph": "X", "name": )";
      text += JsonString(strings_.Get(event.name));
      const std::string_view category = CategoryOf(event, args);
      if (!category.empty()) text += ", \"cat\": " + JsonString(category);
      if (lane.pid) text += ", \"pid\": " + std::to_string(*lane.pid);
      if (!lane.tid.empty()) text += ", \"tid\": " + lane.tid;
      text += ", \"ts\": " + MicrosText(Nanos{event.time});
      if (event.has_end) text += ", \"dur\": " + MicrosText(Nanos{event.end} - Nanos{event.time});
      text += ", \"args\": {";
      text += args;
      text += "}}";
      ETUDE_RETURN_IF_ERROR(put(text));
    }
    for (uint64_t i = 0; i < skipped_; ++i) ETUDE_RETURN_IF_ERROR(put("{\"ph\": \"i\"}"));
    for (uint64_t i = 0; i < malformed_; ++i) ETUDE_RETURN_IF_ERROR(put("{\"ph\": 0}"));
    out += "\n]}\n";
    return inner_->Push(out);
  }

  std::string name_;
  ReadOptions options_;
  const RunContext& context_;
  RunContext inner_context_;
  std::unique_ptr<TraceReader> inner_;

  PacketCutter cutter_;
  PacketInflater inflater_;
  StringPool strings_;
  Tracks tracks_;
  Arguments arguments_;
  std::unordered_map<uint32_t, Sequence> sequences_;
  perfetto::Clocks clocks_;  // of all sequences
  std::vector<Event> events_;
  uint64_t packets_ = 0;
  uint64_t skipped_ = 0;
  uint64_t malformed_ = 0;
  uint64_t unknown_clocks_ = 0;  // events of such
  std::string first_malformed_;
};

}  // namespace

std::unique_ptr<TraceReader> MakePerfettoReader(std::string name, const ReadOptions& options,
                                                const RunContext& context) {
  return std::make_unique<PerfettoReader>(std::move(name), options, context);
}

bool LooksLikePerfetto(std::string_view beginning) {
  constexpr int kPackets = 8;
  bool typical = false;  // a field that tells packets from other messages
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
