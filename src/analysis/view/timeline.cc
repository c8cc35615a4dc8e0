#include "src/analysis/view/timeline.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/run/activity.h"
#include "src/trace/words/thread_text.h"

namespace etude {
namespace {

struct Event {
  Interval time;
  NodeId node;
};

// Returns true for nodes of things that run at some time.
bool IsDrawn(NodeKind kind) {
  return kind != NodeKind::kProcess && kind != NodeKind::kThread && kind != NodeKind::kMetadata;
}

std::string LaneTitle(const Trace& trace, Place place, LaneId id) {
  if (!id) return place == Place::kDevice ? "unknown stream" : "unknown thread";
  const Lane& lane = trace.lane(id);
  if (place == Place::kDevice) {
    return StreamText(trace, lane);
  }
  return ThreadText(trace, lane, "unknown thread");
}

// Returns the number in a text that is one, so that thread 9 comes before thread 10.
std::tuple<size_t, std::string_view> TextOrder(std::string_view text) {
  return {text.size(), text};
}

// Merge width of events in time; 0: no merging.
class Merge {
 public:
  explicit Merge(Nanos width) : width_(width.count) {}
  // Returns true if an event that begins at `begin` joins a run that began at `first`.
  bool Joins(const Interval& event, Nanos first, Nanos origin) const {
    return IsShort(event) && Bucket(event.begin, origin) == Bucket(first, origin);
  }
  bool IsShort(const Interval& event) const { return event.length().count < width_; }

 private:
  int64_t Bucket(Nanos time, Nanos origin) const { return (time - origin).count / width_; }
  int64_t width_;
};

using Events = std::vector<Event>;

class Maker {
 public:
  Maker(const Trace& trace, size_t most) : trace_(trace), most_(std::max<size_t>(most, 1)) {}

  Timeline Make() {
    Collect();
    for (auto& [key, events] : lanes_) Stack(key, events);
    lanes_.clear();
    const Nanos width = FindWidth();
    timeline_.merged_below = width;
    for (size_t i = 0; i < timeline_.lanes.size(); ++i) {
      for (const Events& events : rows_[i]) {
        timeline_.lanes[i].rows.push_back(MakeRow(events, Merge(width)));
      }
    }
    return std::move(timeline_);
  }

 private:
  using LaneKey = std::pair<bool, LaneId>;  // on a device; lane

  void Collect() {
    ForEachNode(trace_, [&](NodeId node) {
      if (!IsDrawn(trace_.kind(node))) return;
      const std::optional<Interval> time = TimeOf(trace_, node);
      if (!time) {
        ++timeline_.untimed;
        return;
      }
      const bool on_device =
          trace_.place(node) == Place::kDevice || DeviceActivity(trace_, node) != Activity::kNone;
      const Interval event{time->begin, std::max(time->begin, time->end)};
      lanes_[{on_device, trace_.lane_id(node)}].push_back({event, node});
      if (!timeline_.span) timeline_.span = event;
      timeline_.span->begin = std::min(timeline_.span->begin, event.begin);
      timeline_.span->end = std::max(timeline_.span->end, event.end);
    });
  }

  // Places each event one row below those that run at its begin.
  void Stack(const LaneKey& key, Events& events) {
    std::ranges::sort(events, {}, [&](const Event& event) {
      return std::tuple(event.time.begin, Nanos{} - event.time.end, event.node);
    });
    std::vector<Events> rows;
    std::vector<Nanos> open;  // ends of running events, the callers first
    for (const Event& event : events) {
      while (!open.empty() && open.back() <= event.time.begin) open.pop_back();
      if (open.size() >= kMostRows) {
        ++timeline_.too_deep;
        continue;
      }
      const size_t depth = open.size();
      if (rows.size() <= depth) rows.resize(depth + 1);
      rows[depth].push_back(event);
      open.push_back(event.time.end);
      ++timeline_.events;
    }
    const Place place = key.first ? Place::kDevice : Place::kHost;
    timeline_.lanes.push_back(
        {.place = place, .title = LaneTitle(trace_, place, key.second), .rows = {}});
    rows_.push_back(std::move(rows));
  }

  // Returns the min width, 0 or a power of two, that leaves few enough events.
  Nanos FindWidth() const {
    if (timeline_.events <= most_) return {};
    constexpr int kMostBits = 62;
    for (int bits = 7; bits < kMostBits; ++bits) {
      const Nanos width{int64_t{1} << bits};
      if (CountAt(Merge(width)) <= most_) return width;
    }
    return Nanos{int64_t{1} << kMostBits};
  }

  uint64_t CountAt(const Merge& merge) const {
    uint64_t count = 0;
    for (const auto& rows : rows_) {
      for (const Events& events : rows) {
        ForEachRun(events, merge, [&](size_t, size_t) { ++count; });
      }
    }
    return count;
  }

  // Calls `fn(begin, end)` for merged events.
  template <typename Fn>
  void ForEachRun(const Events& events, const Merge& merge, Fn fn) const {
    const Nanos origin = timeline_.span->begin;
    for (size_t i = 0; i < events.size();) {
      size_t end = i + 1;
      if (merge.IsShort(events[i].time)) {
        while (end < events.size() && merge.Joins(events[end].time, events[i].time.begin, origin)) {
          ++end;
        }
      }
      fn(i, end);
      i = end;
    }
  }

  Timeline::Row MakeRow(const Events& events, const Merge& merge) {
    Timeline::Row row;
    ForEachRun(events, merge, [&](size_t begin, size_t end) {
      const Event& first = events[begin];
      row.begins.push_back(first.time.begin);
      row.lengths.push_back(events[end - 1].time.end - first.time.begin);
      row.names.push_back(end - begin == 1 ? NameOf(first.node) : NameOfMany(end - begin));
      row.nodes.push_back(trace_.source_id(first.node));
      ++timeline_.drawn;
    });
    return row;
  }

  uint32_t NameOf(NodeId node) {
    const NodeKind kind = trace_.kind(node);
    const auto [at, added] = names_.try_emplace({trace_.name_id(node), kind}, NewName());
    if (added) timeline_.names.push_back({std::string(trace_.name(node)), kind});
    return at->second;
  }
  uint32_t NameOfMany(size_t count) {
    const auto [at, added] = many_.try_emplace(count, NewName());
    if (added) timeline_.names.push_back({fmt::format("{} events", count), NodeKind::kUnknown});
    return at->second;
  }
  uint32_t NewName() const { return static_cast<uint32_t>(timeline_.names.size()); }

  // Threads before streams, each by number.
  struct LaneOrder {
    const Trace* trace;
    auto Key(const LaneKey& key) const {
      const Lane lane = key.second ? trace->lane(key.second) : Lane{};
      return std::tuple(key.first, lane.device, lane.stream, TextOrder(trace->text(lane.process)),
                        TextOrder(trace->text(lane.thread)), key.second);
    }
    bool operator()(const LaneKey& a, const LaneKey& b) const { return Key(a) < Key(b); }
  };

  const Trace& trace_;
  size_t most_;
  std::map<LaneKey, Events, LaneOrder> lanes_{LaneOrder{&trace_}};
  std::vector<std::vector<Events>> rows_;  // by lane and depth
  std::map<std::pair<StringId, NodeKind>, uint32_t> names_;
  std::unordered_map<size_t, uint32_t> many_;
  Timeline timeline_;
};

}  // namespace

Timeline MakeTimeline(const Trace& trace, size_t most) { return Maker(trace, most).Make(); }

}  // namespace etude
