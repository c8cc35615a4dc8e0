#include "src/formats/timeline/perfetto_writer.h"

#include <algorithm>
#include <exception>
#include <protozero/exception.hpp>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/formats/json/json_text.h"
#include "src/formats/perfetto/perfetto_schema.h"

namespace etude {
namespace {

using perfetto::AnnotationField;
using perfetto::CounterField;
using perfetto::EventField;
using perfetto::EventType;
using perfetto::InternedEntry;
using perfetto::InternedField;
using perfetto::PacketField;
using perfetto::ProcessField;
using perfetto::TraceField;
using perfetto::TrackField;

template <typename Field>
constexpr uint32_t Number(Field field) {
  return static_cast<uint32_t>(field);
}

// Numbers of the texts of one kind written in a sequence of packets.
class Interned {
 public:
  explicit Interned(InternedField field) : field_(field) {}

  // Returns the text's number; adds a new text to `entries`, the interned data of the packet.
  uint64_t Id(std::string_view text, std::string& entries) {
    const auto [at, is_new] = ids_.emplace(text, ids_.size() + 1);
    if (is_new) {
      protozero::pbf_writer writer(entries);
      protozero::pbf_writer entry(writer, Number(field_));
      entry.add_uint64(Number(InternedEntry::kId), at->second);
      entry.add_string(Number(InternedEntry::kText), text.data(), text.size());
    }
    return at->second;
  }

 private:
  InternedField field_;
  std::unordered_map<std::string, uint64_t> ids_;
};

class PerfettoWriter {
 public:
  PerfettoWriter(std::span<const TimelinePart> parts, const ByteSink& sink)
      : parts_(parts), out_(sink) {}

  Result<TimelineReport> Run() {
    FindShift();
    for (size_t i = 0; i < parts_.size(); ++i) {
      sequence_ = static_cast<uint32_t>(i + 1);
      ETUDE_RETURN_IF_ERROR(WritePart(parts_[i]));
    }
    ETUDE_RETURN_IF_ERROR(out_.Flush());
    report_.bytes = out_.bytes();
    return report_;
  }

 private:
  // Per sequence of packets.
  struct Texts {
    Interned categories{InternedField::kCategories};
    Interned names{InternedField::kEventNames};
    Interned keys{InternedField::kAnnotationNames};
    Interned values{InternedField::kAnnotationTexts};
  };

  void FindShift() {
    for (const TimelinePart& part : parts_) {
      ForEachNode(*part.trace, [&](NodeId node) {
        if (const auto start = part.trace->start(node)) {
          shift_ = std::min(shift_, *start - part.offset);
        }
      });
    }
  }
  uint64_t TimeOf(const TimelinePart& part, Nanos time) const {
    return static_cast<uint64_t>(std::max((time - part.offset - shift_).count, int64_t{0}));
  }

  // Writes a packet filled by `fill`.
  template <typename Fill>
  Status Packet(Fill fill) {
    packet_.clear();
    {
      protozero::pbf_writer packet(packet_);
      fill(packet);
      packet.add_uint32(Number(PacketField::kSequence), sequence_);
    }
    protozero::pbf_writer trace(out_.text());
    trace.add_message(Number(TraceField::kPacket), packet_);
    return out_.FlushIfFull();
  }

  template <typename Fill>
  Status Track(uint64_t uuid, uint64_t parent, std::string_view name, int32_t rank, Fill fill) {
    return Packet([&](protozero::pbf_writer& packet) {
      protozero::pbf_writer track(packet, Number(PacketField::kTrackDescriptor));
      track.add_uint64(Number(TrackField::kUuid), uuid);
      track.add_string(Number(TrackField::kName), name.data(), name.size());
      fill(track);
      if (parent != 0) track.add_uint64(Number(TrackField::kParent), parent);
      if (rank >= 0) track.add_int32(Number(TrackField::kSiblingRank), rank);
    });
  }

  Status WritePart(const TimelinePart& part) {
    const TimelinePlan plan = PlanTimeline(*part.trace);
    report_.Add(plan);
    const uint64_t process = next_uuid_++;
    const uint64_t first_track = next_uuid_;
    next_uuid_ += plan.tracks.size();
    const auto fill = [&](protozero::pbf_writer& track) {
      protozero::pbf_writer descriptor(track, Number(TrackField::kProcess));
      // Process 0 is the idle one.
      descriptor.add_int32(Number(ProcessField::kPid), static_cast<int32_t>(part.pid + 1));
      descriptor.add_string(Number(ProcessField::kName), part.name);
    };
    ETUDE_RETURN_IF_ERROR(Track(process, 0, part.name, -1, [&](protozero::pbf_writer& track) {
      fill(track);
      track.add_int32(Number(TrackField::kChildOrdering), perfetto::kExplicitOrder);
    }));
    for (size_t i = 0; i < plan.tracks.size(); ++i) {
      ETUDE_RETURN_IF_ERROR(Track(first_track + i, process, plan.tracks[i], static_cast<int32_t>(i),
                                  [](protozero::pbf_writer&) {}));
    }
    ETUDE_RETURN_IF_ERROR(WriteSlices(part, plan, first_track));
    for (size_t i = 0; i < part.counters.size(); ++i) {
      const auto rank = static_cast<int32_t>(plan.tracks.size() + i);
      ETUDE_RETURN_IF_ERROR(WriteCounter(part, part.counters[i], process, rank));
    }
    return {};
  }

  Status WriteSlices(const TimelinePart& part, const TimelinePlan& plan, uint64_t first_track) {
    // Outgoing arrows of each slice; incoming ones are in order.
    std::vector<std::pair<uint32_t, uint64_t>> leaving;
    for (size_t i = 0; i < plan.flows.size(); ++i) {
      leaving.emplace_back(plan.flows[i].from, next_flow_ + i);
    }
    std::ranges::sort(leaving);
    auto leave = leaving.begin();
    auto enter = plan.flows.begin();
    Texts texts;
    EventArgs args(*part.trace);
    std::vector<Nanos> open;  // ends of the slices around the next one
    first_packet_ = true;
    for (uint32_t i = 0; i < plan.slices.size(); ++i) {
      const TimelinePlan::Slice& slice = plan.slices[i];
      const uint64_t track = first_track + slice.track;
      if (i != 0 && plan.slices[i - 1].track != slice.track) {
        ETUDE_RETURN_IF_ERROR(EndAll(part, first_track + plan.slices[i - 1].track, open));
      }
      while (!open.empty() && open.back() <= slice.start && slice.end > open.back()) {
        ETUDE_RETURN_IF_ERROR(End(part, track, open.back()));
        open.pop_back();
      }
      flows_out_.clear();
      flows_in_.clear();
      for (; leave != leaving.end() && leave->first == i; ++leave) {
        flows_out_.push_back(leave->second);
      }
      for (; enter != plan.flows.end() && enter->to == i; ++enter) {
        flows_in_.push_back(next_flow_ + static_cast<uint64_t>(enter - plan.flows.begin()));
      }
      ETUDE_RETURN_IF_ERROR(Begin(part, slice, track, texts, args.Of(slice.node, !slice.has_end)));
      if (slice.has_end) open.push_back(slice.end);
    }
    if (!plan.slices.empty()) {
      ETUDE_RETURN_IF_ERROR(EndAll(part, first_track + plan.slices.back().track, open));
    }
    next_flow_ += plan.flows.size();
    return {};
  }

  Status EndAll(const TimelinePart& part, uint64_t track, std::vector<Nanos>& open) {
    while (!open.empty()) {
      ETUDE_RETURN_IF_ERROR(End(part, track, open.back()));
      open.pop_back();
    }
    return {};
  }

  Status Begin(const TimelinePart& part, const TimelinePlan::Slice& slice, uint64_t track,
               Texts& texts, const std::vector<EventArg>& args) {
    const Trace& trace = *part.trace;
    interned_.clear();
    const uint64_t category = texts.categories.Id(EventCategory(trace, slice.node), interned_);
    const uint64_t name = texts.names.Id(trace.name(slice.node), interned_);
    annotations_.clear();
    for (const EventArg& arg : args) AddAnnotation(arg, texts);
    return Packet([&](protozero::pbf_writer& packet) {
      packet.add_uint64(Number(PacketField::kTimestamp), TimeOf(part, slice.start));
      {
        protozero::pbf_writer event(packet, Number(PacketField::kTrackEvent));
        event.add_uint64(Number(EventField::kCategoryIds), category);
        for (const std::string& annotation : annotations_) {
          event.add_message(Number(EventField::kAnnotations), annotation);
        }
        const EventType type = slice.has_end ? EventType::kBegin : EventType::kInstant;
        event.add_enum(Number(EventField::kType), static_cast<int32_t>(type));
        event.add_uint64(Number(EventField::kNameId), name);
        event.add_uint64(Number(EventField::kTrack), track);
        for (const uint64_t flow : flows_out_) event.add_fixed64(Number(EventField::kFlows), flow);
        for (const uint64_t flow : flows_in_) {
          event.add_fixed64(Number(EventField::kLastFlows), flow);
        }
      }
      if (!interned_.empty()) packet.add_message(Number(PacketField::kInternedData), interned_);
      packet.add_uint32(
          Number(PacketField::kSequenceFlags),
          first_packet_ ? perfetto::kStateCleared | perfetto::kNeedsState : perfetto::kNeedsState);
      first_packet_ = false;
    });
  }

  Status End(const TimelinePart& part, uint64_t track, Nanos time) {
    return Packet([&](protozero::pbf_writer& packet) {
      packet.add_uint64(Number(PacketField::kTimestamp), TimeOf(part, time));
      protozero::pbf_writer event(packet, Number(PacketField::kTrackEvent));
      event.add_enum(Number(EventField::kType), static_cast<int32_t>(EventType::kEnd));
      event.add_uint64(Number(EventField::kTrack), track);
    });
  }

  void AddAnnotation(const EventArg& arg, Texts& texts) {
    std::string& out = annotations_.emplace_back();
    protozero::pbf_writer annotation(out);
    annotation.add_uint64(Number(AnnotationField::kNameId), texts.keys.Id(arg.key, interned_));
    if (const auto* number = std::get_if<int64_t>(&arg.value)) {
      annotation.add_int64(Number(AnnotationField::kInt), *number);
    } else if (const auto* count = std::get_if<uint64_t>(&arg.value)) {
      annotation.add_uint64(Number(AnnotationField::kUint), *count);
    } else if (const auto* text = std::get_if<std::string_view>(&arg.value)) {
      annotation.add_uint64(Number(AnnotationField::kTextId), texts.values.Id(*text, interned_));
    } else {
      const std::string_view json = std::get<EventArg::Json>(arg.value).text;
      if (const auto whole = JsonInt(json)) {
        annotation.add_int64(Number(AnnotationField::kInt), *whole);
      } else {
        annotation.add_string(Number(AnnotationField::kJson), json.data(), json.size());
      }
    }
  }

  Status WriteCounter(const TimelinePart& part, const Counter& counter, uint64_t process,
                      int32_t rank) {
    const uint64_t uuid = next_uuid_++;
    ETUDE_RETURN_IF_ERROR(
        Track(uuid, process, counter.name, rank, [&](protozero::pbf_writer& track) {
          protozero::pbf_writer descriptor(track, Number(TrackField::kCounter));
          switch (counter.unit) {
            case Counter::Unit::kCount:
              descriptor.add_enum(Number(CounterField::kUnit), perfetto::kUnitCount);
              break;
            case Counter::Unit::kBytes:
              descriptor.add_enum(Number(CounterField::kUnit), perfetto::kUnitBytes);
              break;
            case Counter::Unit::kBytesPerSecond:
              descriptor.add_string(Number(CounterField::kUnitName), "B/s");
              break;
          }
        }));
    for (const auto& [time, value] : counter.points) {
      ETUDE_RETURN_IF_ERROR(Packet([&](protozero::pbf_writer& packet) {
        packet.add_uint64(Number(PacketField::kTimestamp), TimeOf(part, time));
        protozero::pbf_writer event(packet, Number(PacketField::kTrackEvent));
        event.add_enum(Number(EventField::kType), static_cast<int32_t>(EventType::kCounter));
        event.add_uint64(Number(EventField::kTrack), uuid);
        event.add_int64(Number(EventField::kCounterValue), value);
      }));
      ++report_.counters;
    }
    return {};
  }

  std::span<const TimelinePart> parts_;
  TimelineReport report_;
  Nanos shift_;  // 0, or the first time if that is negative
  uint32_t sequence_ = 0;
  uint64_t next_uuid_ = 1;
  uint64_t next_flow_ = 1;
  bool first_packet_ = true;
  SinkBuffer out_;
  std::string packet_;
  std::string interned_;
  std::vector<std::string> annotations_;
  std::vector<uint64_t> flows_out_;
  std::vector<uint64_t> flows_in_;
};

}  // namespace

Result<TimelineReport> WritePerfettoTimeline(std::span<const TimelinePart> parts,
                                             const ByteSink& sink) {
  try {
    return PerfettoWriter(parts, sink).Run();
  } catch (const protozero::exception& error) {
    return MakeError(ErrorCode::kInternal,
                     std::string("writing a Perfetto trace: ") + error.what());
  }
}

}  // namespace etude
