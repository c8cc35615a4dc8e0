#include "src/formats/perfetto_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/string_pool.h"
#include "src/formats/json_text.h"
#include "src/formats/kineto_reader.h"
#include "src/formats/perfetto_schema.h"
#include "src/formats/utf8.h"

namespace etude {
namespace {

using perfetto::AnnotationField;
using perfetto::EventField;
using perfetto::EventType;
using perfetto::InternedEntry;
using perfetto::InternedField;
using perfetto::PacketField;
using perfetto::ProcessField;
using perfetto::ThreadField;
using perfetto::TrackField;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

// One packet's tag: field 1, with a length.
constexpr char kPacketTag = 0x0A;
constexpr size_t kMaxLengthBytes = 10;

std::string_view View(protozero::data_view view) { return {view.data(), view.size()}; }

constexpr uint32_t Tag(auto field, pbf_wire_type type) {
  return protozero::tag_and_type(static_cast<uint32_t>(field), type);
}
constexpr uint32_t Delimited(auto field) { return Tag(field, pbf_wire_type::length_delimited); }
constexpr uint32_t Varint(auto field) { return Tag(field, pbf_wire_type::varint); }

// What an event without a category is, by the arguments that PyTorch gives it: its writer has none
// for categories. The first row that fits.
struct UsualCategory {
  std::string_view arg;          // that the event has
  std::string_view name_prefix;  // of the event
  std::string_view category;
};
constexpr UsualCategory kUsualCategories[] = {
    {"cuda_sync_kind", "", "cuda_sync"},
    {"stream", "Memcpy", "gpu_memcpy"},
    {"stream", "Memset", "gpu_memset"},
    {"stream", "", "kernel"},
    {"cbid", "", "cuda_runtime"},
    {"Record function id", "ProfilerStep#", "user_annotation"},
    {"Record function id", "", "cpu_op"},
};

class PerfettoReader : public TraceReader {
 public:
  PerfettoReader(std::string name, const ReadOptions& options, const RunContext& context)
      : name_(std::move(name)), options_(options), context_(context) {
    inner_context_ = context;
    inner_context_.warn = nullptr;
    inner_context_.progress = nullptr;
    // What was read here is whole.
    inner_ = MakeKinetoReader(name_, {.strict = false}, inner_context_);
  }

  Status Push(std::string_view chunk) override {
    while (!pending_.empty() && !chunk.empty()) {
      const size_t missing = std::min(wanted_ - pending_.size(), chunk.size());
      pending_.append(chunk.substr(0, missing));
      chunk.remove_prefix(missing);
      if (pending_.size() < wanted_) return {};
      std::string_view bytes = pending_;
      ETUDE_RETURN_IF_ERROR(TakePackets(bytes));
      if (bytes.empty()) pending_.clear();
    }
    if (chunk.empty()) return {};
    ETUDE_RETURN_IF_ERROR(TakePackets(chunk));
    pending_.assign(chunk);
    return {};
  }

  Result<Trace> Finish(bool cut) override {
    ETUDE_RETURN_IF_ERROR(CheckEnd(cut));
    ETUDE_RETURN_IF_ERROR(PairEvents());
    ETUDE_RETURN_IF_ERROR(EmitEvents());
    return inner_->Finish(cut || !pending_.empty());
  }

 private:
  struct Track {
    uint64_t parent = 0;
    StringId name;
    std::optional<int64_t> pid;
    std::optional<int64_t> tid;
    StringId thread_name;
  };

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

  // How the times of a sequence's own clock become the trace's.
  struct Clock {
    int64_t factor = 1;
    bool incremental = false;
    int64_t last = 0;  // of an incremental clock: where it stands, nanoseconds
    int64_t offset = 0;
  };

  // Packets of one writer.
  struct Sequence {
    std::unordered_map<uint64_t, StringId> categories;
    std::unordered_map<uint64_t, StringId> names;
    std::unordered_map<uint64_t, StringId> keys;
    std::unordered_map<uint64_t, StringId> texts;
    std::unordered_map<uint32_t, Clock> clocks;
    uint64_t default_track = 0;
    uint32_t default_clock = 0;
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
    bool has_event = false;
    bool compressed = false;
  };

  std::string Where() const { return fmt::format("{}:byte {}", name_, offset_); }

  // The packets that are whole; `bytes` is left at the first that is not.
  Status TakePackets(std::string_view& bytes) {
    while (!bytes.empty()) {
      if (bytes.front() != kPacketTag) {
        return BadInput(Where() + ": found bytes that are no packet, expected a Perfetto trace");
      }
      uint64_t length = 0;
      size_t at = 1;
      for (unsigned shift = 0;; shift += 7) {
        if (at == bytes.size()) {
          wanted_ = at + 1;
          return {};
        }
        const auto byte = static_cast<unsigned char>(bytes[at++]);
        if (shift < 64) length |= uint64_t{byte & 0x7FU} << shift;
        if (byte < 0x80) break;
        if (at > kMaxLengthBytes) {
          return BadInput(Where() + ": found a length of more than ten bytes");
        }
      }
      if (length > context_.limits.element_bytes) {
        return BadInput(fmt::format(
            "{}: found a packet of {} bytes, expected at most {} (limit 'element_bytes')", Where(),
            length, context_.limits.element_bytes));
      }
      wanted_ = at + static_cast<size_t>(length);
      if (bytes.size() < wanted_) return {};
      ETUDE_RETURN_IF_ERROR(TakePacket(bytes.substr(at, static_cast<size_t>(length))));
      bytes.remove_prefix(wanted_);
      offset_ += wanted_;
      ++packets_;
    }
    return {};
  }

  Status TakePacket(std::string_view bytes) {
    const size_t events = events_.size();
    try {
      const Packet packet = ReadPacket(bytes);
      if (packet.compressed) {
        return Malformed("compressed packets, which are not read (traceconv unpacks them)");
      }
      Sequence& sequence = sequences_[packet.sequence];
      if ((packet.flags & perfetto::kStateCleared) != 0) sequence = Sequence();
      if (!packet.defaults.empty()) ReadDefaults(packet.defaults, sequence);
      if (!packet.interned.empty()) ReadInterned(packet.interned, sequence);
      if (!packet.snapshot.empty()) ReadSnapshot(packet.snapshot, sequence);
      if (!packet.track.empty()) ReadTrack(packet.track);
      if (packet.has_event) return ReadEvent(packet, sequence);
      const bool known = !packet.track.empty() || !packet.interned.empty() ||
                         !packet.defaults.empty() || !packet.snapshot.empty();
      if (!known) ++skipped_;
      return {};
    } catch (const protozero::exception& error) {
      events_.resize(events);
      return Malformed(error.what());
    }
  }

  Status Malformed(std::string_view what) {
    const std::string message =
        fmt::format("{}: packet {} cannot be read: {}", Where(), packets_, what);
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
          packet.compressed = true;
          reader.skip();
          break;
        default: reader.skip();
      }
    }
    return packet;
  }

  static void ReadDefaults(std::string_view bytes, Sequence& sequence) {
    pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case Varint(perfetto::DefaultsField::kTimestampClock):
          sequence.default_clock = reader.get_uint32();
          break;
        case Delimited(perfetto::DefaultsField::kTrackEvent): {
          pbf_reader event(reader.get_view());
          while (event.next()) {
            if (event.tag_and_type() == Varint(perfetto::EventDefaultsField::kTrack)) {
              sequence.default_track = event.get_uint64();
            } else {
              event.skip();
            }
          }
          break;
        }
        default: reader.skip();
      }
    }
  }

  void ReadInterned(std::string_view bytes, Sequence& sequence) {
    pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) {
      std::unordered_map<uint64_t, StringId>* table = nullptr;
      switch (reader.tag_and_type()) {
        case Delimited(InternedField::kCategories): table = &sequence.categories; break;
        case Delimited(InternedField::kEventNames): table = &sequence.names; break;
        case Delimited(InternedField::kAnnotationNames): table = &sequence.keys; break;
        case Delimited(InternedField::kAnnotationTexts): table = &sequence.texts; break;
        default: break;
      }
      if (table == nullptr) {
        reader.skip();
        continue;
      }
      uint64_t id = 0;
      StringId text = strings_.Intern("");
      pbf_reader entry(reader.get_view());
      while (entry.next()) {
        switch (entry.tag_and_type()) {
          case Varint(InternedEntry::kId): id = entry.get_uint64(); break;
          case Delimited(InternedEntry::kText): text = Text(View(entry.get_view())); break;
          default: entry.skip();
        }
      }
      (*table)[id] = text;
    }
  }

  // Clocks of the sequence by what they showed when the trace's clock was read.
  static void ReadSnapshot(std::string_view bytes, Sequence& sequence) {
    constexpr uint32_t kBootTime = 6;
    struct Reading {
      uint32_t id = 0;
      int64_t time = 0;
      int64_t factor = 1;
      bool incremental = false;
    };
    std::vector<Reading> readings;
    pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) {
      if (reader.tag_and_type() != Delimited(uint32_t{1})) {
        reader.skip();
        continue;
      }
      Reading& reading = readings.emplace_back();
      pbf_reader clock(reader.get_view());
      while (clock.next()) {
        switch (clock.tag_and_type()) {
          case Varint(uint32_t{1}): reading.id = clock.get_uint32(); break;
          case Varint(uint32_t{2}): reading.time = static_cast<int64_t>(clock.get_uint64()); break;
          case Varint(uint32_t{3}): reading.incremental = clock.get_bool(); break;
          case Varint(uint32_t{4}):
            reading.factor = static_cast<int64_t>(clock.get_uint64());
            break;
          default: clock.skip();
        }
      }
    }
    const auto boot = std::ranges::find(readings, kBootTime, &Reading::id);
    for (const Reading& reading : readings) {
      if (reading.id == kBootTime) continue;
      Clock clock{.factor = std::max(reading.factor, int64_t{1}),
                  .incremental = reading.incremental};
      if (__builtin_mul_overflow(reading.time, clock.factor, &clock.last)) continue;
      if (boot != readings.end()) clock.offset = (Nanos{boot->time} - Nanos{clock.last}).count;
      sequence.clocks[reading.id] = clock;
    }
  }

  void ReadTrack(std::string_view bytes) {
    uint64_t uuid = 0;
    Track track;
    pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case Varint(TrackField::kUuid): uuid = reader.get_uint64(); break;
        case Varint(TrackField::kParent): track.parent = reader.get_uint64(); break;
        case Delimited(TrackField::kName):
        case Delimited(TrackField::kStaticName): track.name = Text(View(reader.get_view())); break;
        case Delimited(TrackField::kProcess): {
          pbf_reader process(reader.get_view());
          while (process.next()) {
            if (process.tag_and_type() == Varint(ProcessField::kPid)) {
              track.pid = process.get_int32();
            } else {
              process.skip();
            }
          }
          break;
        }
        case Delimited(TrackField::kThread): ReadThread(reader.get_view(), track); break;
        default: reader.skip();
      }
    }
    tracks_[uuid] = track;
  }

  void ReadThread(protozero::data_view view, Track& track) {
    pbf_reader thread(view);
    while (thread.next()) {
      switch (thread.tag_and_type()) {
        case Varint(ThreadField::kPid): track.pid = thread.get_int32(); break;
        case Varint(ThreadField::kTid): track.tid = thread.get_int64(); break;
        case Delimited(ThreadField::kName):
          track.thread_name = Text(View(thread.get_view()));
          break;
        default: thread.skip();
      }
    }
  }

  Status ReadEvent(const Packet& packet, Sequence& sequence) {
    const auto time = TimeOf(packet, sequence);
    if (!time) return Malformed("its time is out of range");
    Event event{.time = *time, .track = sequence.default_track, .order = packets_};
    int32_t type = 0;
    std::string args;
    pbf_reader reader(packet.event.data(), packet.event.size());
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case Varint(EventField::kType): type = reader.get_enum(); break;
        case Varint(EventField::kTrack): event.track = reader.get_uint64(); break;
        case Varint(EventField::kNameId):
          event.name = Interned(sequence.names, reader.get_uint64());
          break;
        case Delimited(EventField::kName): event.name = Text(View(reader.get_view())); break;
        case Varint(EventField::kCategoryIds):
          event.category = Interned(sequence.categories, reader.get_uint64());
          break;
        case Delimited(EventField::kCategoryIds):
          for (const uint64_t id : reader.get_packed_uint64()) {
            event.category = Interned(sequence.categories, id);
          }
          break;
        case Delimited(EventField::kCategories):
          event.category = Text(View(reader.get_view()));
          break;
        case Delimited(EventField::kAnnotations): AddArg(reader.get_view(), sequence, args); break;
        default: reader.skip();
      }
    }
    event.type = static_cast<EventType>(type);
    if (event.type != EventType::kBegin && event.type != EventType::kEnd) {
      ++skipped_;
      return {};
    }
    if (!args.empty()) event.args = strings_.Intern(args);
    if (event.type == EventType::kEnd && !events_.empty()) {
      const Event& last = events_.back();
      event.ends_at_once = last.type == EventType::kBegin && last.track == event.track &&
                           last.time == event.time && last.order + 1 == event.order;
    }
    if (events_.size() >= 2 * context_.limits.nodes) {
      return BadInput(
          fmt::format("{}: more than {} slices (limit 'nodes')", Where(), context_.limits.nodes));
    }
    events_.push_back(event);
    return {};
  }

  static std::optional<int64_t> TimeOf(const Packet& packet, Sequence& sequence) {
    if (packet.timestamp > uint64_t{INT64_MAX}) return std::nullopt;
    auto time = static_cast<int64_t>(packet.timestamp);
    const auto clock = sequence.clocks.find(packet.clock.value_or(sequence.default_clock));
    if (clock == sequence.clocks.end()) return time;
    Clock& own = clock->second;
    if (__builtin_mul_overflow(time, own.factor, &time)) return std::nullopt;
    if (own.incremental) {
      if (__builtin_add_overflow(own.last, time, &time)) return std::nullopt;
      own.last = time;
    }
    if (__builtin_add_overflow(time, own.offset, &time)) return std::nullopt;
    return time;
  }

  StringId Text(std::string_view bytes) {
    return strings_.Intern(utf8::IsValid(bytes) ? bytes : std::string_view(utf8::Repair(bytes)));
  }
  // A number without a text is kept as such: packets were lost.
  StringId Interned(const std::unordered_map<uint64_t, StringId>& table, uint64_t id) {
    const auto found = table.find(id);
    if (found != table.end()) return found->second;
    ++lost_texts_;
    return strings_.Intern(fmt::format("(text {})", id));
  }

  // Appends `"key": value`.
  void AddArg(protozero::data_view view, const Sequence& sequence, std::string& args) {
    constexpr std::string_view kMembers = "metadata";  // Kineto: JSON members in one text
    std::string key;
    std::string value;
    ReadAnnotation(view, sequence, 0, &key, value);
    if (key == kMembers && AddMembers(value, args)) return;
    if (!args.empty()) args += ", ";
    args += JsonString(key == "correlation_id" ? "correlation" : key) + ": " + value;
  }

  // `json` is a text with members of an object, as in `"stream": 7, "correlation": 3`.
  static bool AddMembers(std::string_view json, std::string& args) {
    // Texts without escapes but for quotes are all there is.
    if (json.size() < 2 || !json.starts_with('"')) return false;
    std::string members;
    for (size_t i = 1; i + 1 < json.size(); ++i) {
      if (json[i] == '\\' && i + 2 < json.size()) ++i;
      members += json[i];
    }
    if (!CheckJson("{" + members + "}").valid) return false;
    if (members.find_first_not_of(" \n\t") == std::string::npos) return true;
    if (!args.empty()) args += ", ";
    args += members;
    return true;
  }

  // The name of an annotation, and its value as JSON.
  void ReadAnnotation(protozero::data_view view, const Sequence& sequence, size_t depth,
                      std::string* key, std::string& value) {
    if (depth > context_.limits.depth) throw protozero::invalid_length_exception();
    bool is_list = false;
    bool is_object = false;
    value = "null";
    std::string inner;
    pbf_reader reader(view);
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case Varint(AnnotationField::kNameId):
          *key = strings_.Get(Interned(sequence.keys, reader.get_uint64()));
          break;
        case Delimited(AnnotationField::kName):
          *key = strings_.Get(Text(View(reader.get_view())));
          break;
        case Varint(AnnotationField::kBool): value = reader.get_bool() ? "true" : "false"; break;
        case Varint(AnnotationField::kUint):
        case Varint(AnnotationField::kPointer): value = std::to_string(reader.get_uint64()); break;
        case Varint(AnnotationField::kInt): value = std::to_string(reader.get_int64()); break;
        case Tag(AnnotationField::kDouble, pbf_wire_type::fixed64): {
          const double number = reader.get_double();
          value = fmt::format("{}", number);
          if (!std::isfinite(number)) value = JsonString(value);
          break;
        }
        case Delimited(AnnotationField::kText):
          value = JsonString(strings_.Get(Text(View(reader.get_view()))));
          break;
        case Varint(AnnotationField::kTextId):
          value = JsonString(strings_.Get(Interned(sequence.texts, reader.get_uint64())));
          break;
        case Delimited(AnnotationField::kJson): {
          const std::string_view json = View(reader.get_view());
          const bool valid = utf8::IsValid(json) && CheckJson(json).valid;
          value = valid ? std::string(json) : JsonString(utf8::Repair(json));
          break;
        }
        case Delimited(AnnotationField::kEntries): {
          std::string name;
          std::string entry;
          ReadAnnotation(reader.get_view(), sequence, depth + 1, &name, entry);
          inner += (inner.empty() ? "" : ", ") + JsonString(name) + ": " + entry;
          is_object = true;
          break;
        }
        case Delimited(AnnotationField::kElements): {
          std::string name;
          std::string element;
          ReadAnnotation(reader.get_view(), sequence, depth + 1, &name, element);
          inner += (inner.empty() ? "" : ", ") + element;
          is_list = true;
          break;
        }
        default: reader.skip();
      }
    }
    if (is_object && !is_list) value = "{" + inner + "}";
    if (is_list && !is_object) value = "[" + inner + "]";
  }

  Status CheckEnd(bool cut) {
    if (packets_ == 0)
      return BadInput(name_ + ": found no whole packet, expected a Perfetto trace");
    if (malformed_ != 0) {
      context_.Warn(fmt::format("{}: skipped {} malformed packets; the first: {}", name_,
                                malformed_, first_malformed_));
    }
    if (!pending_.empty() || cut) {
      const std::string message =
          fmt::format("{}: the {} ends early", Where(), cut ? "compressed file" : "last packet");
      if (options_.strict) return BadInput(message);
      context_.Warn(message);
    }
    if (foreign_bytes() != 0) {
      const std::string message =
          fmt::format("{}: {} bytes follow the end of the compressed data", name_, foreign_bytes());
      if (options_.strict) return BadInput(message);
      context_.Warn(message);
      inner_->set_foreign_bytes(foreign_bytes());
    }
    if (lost_texts_ != 0) {
      context_.Warn(fmt::format("{}: {} names are lost: the packets with their texts are not there",
                                name_, lost_texts_));
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
        fmt::format("{}: {} ends of slices have no beginning", name_, unpaired);
    if (options_.strict) return BadInput(message);
    context_.Warn(message);
    malformed_ += unpaired;
    return {};
  }

  StringId Joined(StringId a, StringId b) {
    if (!a) return b;
    return strings_.Intern(std::string(strings_.Get(a)) + ", " + std::string(strings_.Get(b)));
  }

  // The process and thread of a track: its own, else those of the tracks above it. What is no
  // thread goes by the name of its track.
  struct Lane {
    std::optional<int64_t> pid;
    std::string tid;  // JSON; "" if unknown
  };
  Lane LaneOf(uint64_t uuid) const {
    constexpr int kMostTracks = 64;  // above each other
    Lane lane;
    StringId name;
    for (int i = 0; i < kMostTracks; ++i) {
      const auto found = tracks_.find(uuid);
      if (found == tracks_.end()) break;
      const Track& track = found->second;
      if (!lane.pid) lane.pid = track.pid;
      if (lane.tid.empty() && track.tid) lane.tid = std::to_string(*track.tid);
      const bool is_process = track.pid && !track.tid;
      if (!name && !is_process) name = track.name;
      if (track.parent == 0 || track.parent == uuid) break;
      uuid = track.parent;
    }
    if (lane.tid.empty() && name) lane.tid = JsonString(strings_.Get(name));
    return lane;
  }

  static bool HasKey(std::string_view args, std::string_view key) {
    return args.find("\"" + std::string(key) + "\":") != std::string_view::npos;
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
    std::unordered_map<uint64_t, Lane> lanes;
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
      if (is_new) at->second = LaneOf(event.track);
      const Lane& lane = at->second;
      const std::string_view args = strings_.Get(event.args);
      std::string text = "{\"ph\": \"X\", \"name\": " + JsonString(strings_.Get(event.name));
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
    for (uint64_t i = 0; i < malformed_; ++i) ETUDE_RETURN_IF_ERROR(put("{}"));
    out += "\n]}\n";
    return inner_->Push(out);
  }

  std::string name_;
  ReadOptions options_;
  const RunContext& context_;
  RunContext inner_context_;
  std::unique_ptr<TraceReader> inner_;

  std::string pending_;  // bytes of a packet that is not complete yet
  size_t wanted_ = 0;    // pending_ cannot be complete with fewer bytes
  uint64_t offset_ = 0;  // of the next packet in the file
  uint64_t packets_ = 0;

  StringPool strings_;
  std::unordered_map<uint32_t, Sequence> sequences_;
  std::unordered_map<uint64_t, Track> tracks_;
  std::vector<Event> events_;
  uint64_t skipped_ = 0;
  uint64_t malformed_ = 0;
  uint64_t lost_texts_ = 0;
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
    if (beginning.front() != kPacketTag) return false;
    try {
      const char* at = beginning.data() + 1;
      const char* end = beginning.data() + beginning.size();
      const uint64_t length = protozero::decode_varint(&at, end);
      const auto left = static_cast<uint64_t>(end - at);
      if (length > left) return typical;
      pbf_reader packet(at, static_cast<size_t>(length));
      while (packet.next()) {
        switch (packet.tag_and_type()) {
          case Varint(PacketField::kSequence):
          case Delimited(PacketField::kTrackEvent):
          case Delimited(PacketField::kClockSnapshot):
          case Delimited(PacketField::kTrackDescriptor): typical = true; break;
          default: break;
        }
        packet.skip();
      }
      at += length;
      beginning = {at, static_cast<size_t>(end - at)};
    } catch (const protozero::exception&) {
      return typical && i > 0;
    }
  }
  return typical;
}

}  // namespace etude
