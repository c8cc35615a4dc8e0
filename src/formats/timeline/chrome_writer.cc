#include "src/formats/timeline/chrome_writer.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "src/formats/json/json_text.h"
#include "src/formats/profile/profile_categories.h"
#include "src/trace/words/machine_clock.h"
#include "src/trace/words/memory_event.h"

namespace etude {
namespace {

// Writes the elements of "traceEvents", one per line.
class Events {
 public:
  explicit Events(const ByteSink& sink) : buffer_(sink) {}

  // Begins an event of phase `phase`; members follow, then End.
  void Begin(std::string_view phase) {
    out_ += first_ ? "\n{\"ph\": \"" : ",\n{\"ph\": \"";
    first_ = false;
    out_ += phase;
    out_ += '"';
  }
  void Member(std::string_view key, std::string_view json) {
    out_ += ", ";
    out_ += JsonString(key);
    out_ += ": ";
    out_ += json;
  }
  void Text(std::string_view key, std::string_view text) { Member(key, JsonString(text)); }
  void Number(std::string_view key, int64_t value) { Member(key, std::to_string(value)); }
  void Time(std::string_view key, Nanos time) { Member(key, MicrosText(time)); }
  Status End() { return buffer_.Put("}"); }
  void Raw(std::string_view text) { out_ += text; }
  Status Flush() { return buffer_.Flush(); }
  uint64_t bytes() const { return buffer_.bytes(); }

 private:
  SinkBuffer buffer_;
  std::string& out_ = buffer_.text();
  bool first_ = true;
};

// Replaces bare NaN and Infinity, which Python writes and viewers refuse, by strings.
std::string Strict(std::string_view json) {
  const bool may_be = json.find_first_of("NI") != std::string_view::npos;
  return may_be && CheckJson(json).non_finite != 0 ? JsonString(json) : std::string(json);
}

std::string ArgsJson(const std::vector<EventArg>& args) {
  std::string json = "{";
  for (const EventArg& arg : args) {
    if (json.size() > 1) json += ", ";
    json += JsonString(arg.key) + ": ";
    if (const auto* number = std::get_if<int64_t>(&arg.value)) {
      json += std::to_string(*number);
    } else if (const auto* count = std::get_if<uint64_t>(&arg.value)) {
      json += std::to_string(*count);
    } else if (const auto* text = std::get_if<std::string_view>(&arg.value)) {
      json += JsonString(*text);
    } else {
      json += Strict(std::get<EventArg::Json>(arg.value).text);
    }
  }
  return json + "}";
}

class TimelineWriter {
 public:
  TimelineWriter(std::span<const TimelinePart> parts, const ByteSink& sink)
      : parts_(parts), events_(sink) {}

  Result<TimelineReport> Run() {
    events_.Raw("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
    for (const TimelinePart& part : parts_) ETUDE_RETURN_IF_ERROR(WritePart(part));
    events_.Raw("\n]}\n");
    ETUDE_RETURN_IF_ERROR(events_.Flush());
    report_.bytes = events_.bytes();
    return report_;
  }

 private:
  Status WritePart(const TimelinePart& part) {
    const TimelinePlan plan = PlanTimeline(*part.trace);
    report_.Add(plan);
    ETUDE_RETURN_IF_ERROR(Name(part, "process_name", 0, part.name));
    ETUDE_RETURN_IF_ERROR(SortIndex(part, "process_sort_index", 0, part.pid));
    for (size_t i = 0; i < plan.tracks.size(); ++i) {
      const auto tid = static_cast<int64_t>(i);
      ETUDE_RETURN_IF_ERROR(Name(part, "thread_name", tid, plan.tracks[i]));
      ETUDE_RETURN_IF_ERROR(SortIndex(part, "thread_sort_index", tid, tid));
    }
    EventArgs args(*part.trace);
    for (const TimelinePlan::Slice& slice : plan.slices) {
      ETUDE_RETURN_IF_ERROR(WriteSlice(part, slice, args));
    }
    for (const TimelinePlan::Flow& flow : plan.flows) {
      ETUDE_RETURN_IF_ERROR(WriteFlow(part, plan, flow));
    }
    for (const Counter& counter : part.counters) {
      ETUDE_RETURN_IF_ERROR(WriteCounter(part, counter));
    }
    return {};
  }

  Status Name(const TimelinePart& part, std::string_view what, int64_t tid, std::string_view name) {
    events_.Begin("M");
    events_.Text("name", what);
    events_.Number("pid", part.pid);
    events_.Number("tid", tid);
    events_.Member("args", "{\"name\": " + JsonString(name) + "}");
    return events_.End();
  }
  Status SortIndex(const TimelinePart& part, std::string_view what, int64_t tid, int64_t index) {
    events_.Begin("M");
    events_.Text("name", what);
    events_.Number("pid", part.pid);
    events_.Number("tid", tid);
    events_.Member("args", fmt::format("{{\"sort_index\": {}}}", index));
    return events_.End();
  }

  Status WriteSlice(const TimelinePart& part, const TimelinePlan::Slice& slice, EventArgs& args) {
    const Trace& trace = *part.trace;
    events_.Begin(slice.has_end ? "X" : "i");
    events_.Text("cat", EventCategory(trace, slice.node));
    events_.Text("name", trace.name(slice.node));
    events_.Number("pid", part.pid);
    events_.Number("tid", slice.track);
    events_.Time("ts", slice.start - part.offset);
    if (slice.has_end) {
      events_.Time("dur", slice.end - slice.start);
    } else {
      events_.Text("s", "t");
    }
    events_.Member("args", ArgsJson(args.Of(slice.node, !slice.has_end)));
    return events_.End();
  }

  // The arrow begins at the end of its slice, or at the begin of the other if that is earlier.
  Status WriteFlow(const TimelinePart& part, const TimelinePlan& plan,
                   const TimelinePlan::Flow& flow) {
    const TimelinePlan::Slice& from = plan.slices[flow.from];
    const TimelinePlan::Slice& to = plan.slices[flow.to];
    // A point at its end is outside the slice.
    const Nanos last = std::max(from.start, from.end - Nanos{1});
    const auto point = [&](std::string_view phase, const TimelinePlan::Slice& slice, Nanos time) {
      events_.Begin(phase);
      events_.Text("cat", "dependency");
      events_.Text("name", etude::Name(flow.arrow));
      events_.Number("id", static_cast<int64_t>(next_flow_));
      events_.Number("pid", part.pid);
      events_.Number("tid", slice.track);
      events_.Time("ts", time - part.offset);
      if (phase == "f") events_.Text("bp", "e");
      return events_.End();
    };
    ETUDE_RETURN_IF_ERROR(point("s", from, std::min(last, to.start)));
    ETUDE_RETURN_IF_ERROR(point("f", to, to.start));
    ++next_flow_;
    return {};
  }

  Status WriteCounter(const TimelinePart& part, const Counter& counter) {
    for (const auto& [time, value] : counter.points) {
      events_.Begin("C");
      events_.Text("name", counter.name);
      events_.Number("pid", part.pid);
      events_.Time("ts", time - part.offset);
      events_.Member("args", fmt::format("{{\"value\": {}}}", value));
      ETUDE_RETURN_IF_ERROR(events_.End());
      ++report_.counters;
    }
    return {};
  }

  std::span<const TimelinePart> parts_;
  Events events_;
  TimelineReport report_;
  uint64_t next_flow_ = 0;
};

class ProfileWriter {
 public:
  ProfileWriter(const Trace& trace, const ByteSink& sink)
      : trace_(trace), events_(sink), args_(trace) {}

  Result<TimelineReport> Run() {
    const TraceInfo& info = trace_.info();
    events_.Raw("{");
    if (!info.traits.is_profile) {
      // A trace that was never a profile gets the header of one.
      TopMember("schemaVersion", "1");
      if (info.rank) TopMember("distributedInfo", DistributedInfo(info));
      const std::string_view clock = MachineClockOf(trace_);
      if (!clock.empty()) TopMember(kClockKey, clock);
    } else {
      if (!info.schema.empty()) TopMember("schemaVersion", info.schema);
      for (const Extra& extra : info.extras) {
        if (extra.form != Extra::Form::kJson) continue;
        TopMember(trace_.text(extra.key), trace_.text(extra.text));
      }
    }
    events_.Raw("\"traceEvents\": [");
    for (size_t i = 0; i < trace_.node_count(); ++i) {
      ETUDE_RETURN_IF_ERROR(WriteEvent(NodeId::FromIndex(i)));
    }
    events_.Raw("\n]}\n");
    ETUDE_RETURN_IF_ERROR(events_.Flush());
    report_.bytes = events_.bytes();
    return report_;
  }

 private:
  static std::string DistributedInfo(const TraceInfo& info) {
    std::string json = fmt::format("{{\"rank\": {}", *info.rank);
    if (info.world_size) json += fmt::format(", \"world_size\": {}", *info.world_size);
    return json + "}";
  }

  void TopMember(std::string_view key, std::string_view json) {
    events_.Raw(JsonString(key));
    events_.Raw(": ");
    events_.Raw(json);
    events_.Raw(",\n");
  }

  Status WriteEvent(NodeId node) {
    const auto start = trace_.start(node);
    if (!start) {
      ++report_.untimed;
      return {};
    }
    ++report_.slices;
    const bool is_instant = IsMemoryEvent(trace_, node);
    events_.Begin(is_instant ? "i" : "X");
    const std::string category = EventCategory(trace_, node);
    const bool given =
        trace_.kind(node) != NodeKind::kUnknown || category != etude::Name(NodeKind::kUnknown);
    if (given) events_.Text("cat", category);
    events_.Text("name", trace_.name(node));
    WriteLane(node);
    events_.Time("ts", *start);
    if (const auto duration = trace_.duration(node)) events_.Time("dur", *duration);
    if (is_instant) events_.Text("s", "t");  // scope: thread
    for (const Extra& extra : trace_.extras(node)) {
      std::string_view key = trace_.text(extra.key);
      if (extra.form != Extra::Form::kJson || !key.starts_with(kEventExtraPrefix)) continue;
      key.remove_prefix(kEventExtraPrefix.size());
      if (is_instant && key == "s") continue;
      if (key != "cat" && key != "pid" && key != "tid") {
        events_.Member(key, trace_.text(extra.text));
      }
    }
    events_.Member("args", ArgsJson(args_.Of(node)));
    return events_.End();
  }

  // Writes the event's own process and thread; for device events device and stream, unless the
  // event had others.
  void WriteLane(NodeId node) {
    const LaneId lane_id = trace_.lane_id(node);
    const Lane lane = lane_id ? trace_.lane(lane_id) : Lane();
    const bool device = trace_.place(node) == Place::kDevice;
    const auto member = [&](std::string_view key, StringId text, int32_t number) {
      for (const Extra& extra : trace_.extras(node)) {
        const std::string_view name = trace_.text(extra.key);
        if (name.starts_with(kEventExtraPrefix) && name.substr(kEventExtraPrefix.size()) == key) {
          return events_.Member(key, trace_.text(extra.text));
        }
      }
      if (device) {
        if (number >= 0) events_.Number(key, number);
      } else if (text) {
        const std::string_view name = trace_.text(text);
        const auto whole = JsonInt(name);
        if (whole && std::to_string(*whole) == name) {
          events_.Member(key, name);
        } else {
          events_.Text(key, name);
        }
      }
    };
    member("pid", lane.process, lane.device);
    member("tid", lane.thread, lane.stream);
  }

  const Trace& trace_;
  Events events_;
  EventArgs args_;
  TimelineReport report_;
};

}  // namespace

void TimelineReport::Add(const TimelinePlan& plan) {
  slices += plan.slices.size();
  flows += plan.flows.size();
  untimed += plan.untimed;
  crowded += plan.crowded;
  backward += plan.backward;
  split_tracks += plan.split_tracks;
}

Result<TimelineReport> WriteChromeTimeline(std::span<const TimelinePart> parts,
                                           const ByteSink& sink) {
  return TimelineWriter(parts, sink).Run();
}

Result<TimelineReport> WriteProfile(const Trace& trace, const ByteSink& sink) {
  return ProfileWriter(trace, sink).Run();
}

}  // namespace etude
