#include "src/formats/timeline/timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "src/base/text/quantity.h"
#include "src/formats/profile/comm_facts.h"
#include "src/formats/profile/profile_categories.h"
#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/run/calls/launch.h"
#include "src/trace/words/memory_event.h"
#include "src/trace/words/thread_text.h"

namespace etude {
namespace {

// Tracks in display order: threads, then streams, by number, then name.
struct TrackKey {
  enum class Side : uint8_t { kHost, kDevice, kUnknown };
  Side side = Side::kHost;
  std::string process;
  int64_t first = -1;   // number of the thread, or of the device
  int64_t second = -1;  // number of the stream
  std::string name;     // if it has no number

  friend auto operator<=>(const TrackKey&, const TrackKey&) = default;
};

class Planner {
 public:
  explicit Planner(const Trace& trace) : trace_(trace) {}

  TimelinePlan Run() {
    NameTracks();
    AddSlices();
    SplitTracks();
    AddFlows();
    return std::move(plan_);
  }

 private:
  TrackKey KeyOf(NodeId node) const {
    TrackKey key;
    const LaneId lane_id = trace_.lane_id(node);
    const Lane lane = lane_id ? trace_.lane(lane_id) : Lane();
    const bool device = trace_.place(node) == Place::kDevice;
    if (device || lane.stream >= 0) {
      key.side = TrackKey::Side::kDevice;
      key.process = trace_.text(lane.process);
      key.first = lane.device;
      key.second = lane.stream;
    } else if (lane.thread || trace_.tid(node)) {
      const std::string thread =
          lane.thread ? std::string(trace_.text(lane.thread)) : std::to_string(*trace_.tid(node));
      key.process = trace_.text(lane.process);
      if (const auto number = ParseWhole(thread)) {
        key.first = *number;
      } else {
        key.name = thread;
      }
    } else {
      // Unknown place: work and communication are kept apart.
      key.side = TrackKey::Side::kUnknown;
      key.name = IsCommunication(trace_.kind(node)) ? "communication" : "work";
    }
    return key;
  }

  static std::string NameOf(const TrackKey& key, bool with_process) {
    std::string name;
    switch (key.side) {
      case TrackKey::Side::kHost:
        name = key.name.empty() ? fmt::format("thread {}", key.first) : key.name;
        if (with_process && !key.process.empty()) name += fmt::format(" of {}", key.process);
        break;
      case TrackKey::Side::kDevice:
        name = key.second < 0 ? "stream unknown" : fmt::format("stream {}", key.second);
        if (key.first >= 0) name = fmt::format("device {} {}", key.first, name);
        if (with_process && !key.process.empty()) {
          name += fmt::format(" of {}", ProcessText(key.process));
        }
        break;
      case TrackKey::Side::kUnknown: name = key.name; break;
    }
    return name;
  }

  // Many nodes share lane, place and kind of work: the key is made once for each combination.
  const TrackKey& KnownKeyOf(NodeId node) {
    const auto tid = trace_.tid(node);
    const std::tuple facts(trace_.lane_id(node), trace_.place(node), tid ? *tid + 1 : 0,
                           IsCommunication(trace_.kind(node)));
    auto found = keys_.find(facts);
    if (found == keys_.end()) found = keys_.emplace(facts, KeyOf(node)).first;
    return found->second;
  }

  void NameTracks() {
    ForEachNode(trace_, [&](NodeId node) {
      if (trace_.start(node)) KnownKeyOf(node);
    });
    std::map<TrackKey::Side, std::set<std::string_view>> processes;
    for (const auto& [facts, key] : keys_) {
      tracks_.emplace(key, 0);
      processes[key.side].insert(key.process);
    }
    for (auto& [key, number] : tracks_) {
      number = static_cast<uint32_t>(plan_.tracks.size());
      plan_.tracks.push_back(NameOf(key, processes[key.side].size() > 1));
    }
  }

  void AddSlices() {
    ForEachNode(trace_, [&](NodeId node) {
      const auto start = trace_.start(node);
      if (!start) {
        ++plan_.untimed;
        return;
      }
      auto duration = trace_.duration(node);
      if (!duration) duration = trace_.exclusive(node);
      plan_.slices.push_back({.node = node,
                              .track = tracks_.at(KnownKeyOf(node)),
                              .start = *start,
                              .end = *start + duration.value_or(Nanos{}),
                              .has_end = duration.has_value()});
    });
    SortSlices();
  }

  void SortSlices() {
    using Slice = TimelinePlan::Slice;
    std::ranges::sort(plan_.slices, [](const Slice& a, const Slice& b) {
      return std::tie(a.track, a.start, b.end, a.node) < std::tie(b.track, b.start, a.end, b.node);
    });
  }

  // Moves slices that do not fit into an open one to additional tracks.
  void SplitTracks() {
    std::map<std::pair<uint32_t, size_t>, uint32_t> beside;  // by track and level
    std::vector<std::vector<Nanos>> levels;                  // by level: ends of the open slices
    uint32_t track = UINT32_MAX;
    for (TimelinePlan::Slice& slice : plan_.slices) {
      if (slice.track != track) {
        track = slice.track;
        levels.clear();
      }
      size_t level = 0;
      for (;; ++level) {
        if (level == levels.size()) levels.emplace_back();
        std::vector<Nanos>& open = levels[level];
        while (!open.empty() && open.back() <= slice.start && slice.end > open.back()) {
          open.pop_back();
        }
        if (open.empty() || slice.end <= open.back() || level == kMostLevels) break;
      }
      if (level == kMostLevels) {
        levels.pop_back();
        slice.node = NodeId::None();
        ++plan_.crowded;
        continue;
      }
      levels[level].push_back(slice.end);
      if (level == 0) continue;
      const auto [at, is_new] =
          beside.emplace(std::pair(track, level), static_cast<uint32_t>(plan_.tracks.size()));
      if (is_new) plan_.tracks.push_back(fmt::format("{} ({})", plan_.tracks[track], level + 1));
      slice.track = at->second;
    }
    std::erase_if(plan_.slices, [](const TimelinePlan::Slice& slice) { return !slice.node; });
    plan_.split_tracks = beside.size();
    if (plan_.split_tracks != 0) OrderTracks(beside);
  }

  // Places new tracks after the one that they came from.
  void OrderTracks(const std::map<std::pair<uint32_t, size_t>, uint32_t>& beside) {
    std::vector<uint32_t> new_number(plan_.tracks.size());
    std::vector<std::string> names;
    const size_t own = plan_.tracks.size() - beside.size();
    auto next = beside.begin();
    for (uint32_t track = 0; track < own; ++track) {
      new_number[track] = static_cast<uint32_t>(names.size());
      names.push_back(plan_.tracks[track]);
      for (; next != beside.end() && next->first.first == track; ++next) {
        new_number[next->second] = static_cast<uint32_t>(names.size());
        names.push_back(plan_.tracks[next->second]);
      }
    }
    plan_.tracks = std::move(names);
    for (TimelinePlan::Slice& slice : plan_.slices) slice.track = new_number[slice.track];
    SortSlices();
  }

  void AddFlows() {
    constexpr uint32_t kNowhere = UINT32_MAX;
    std::vector<uint32_t> slice_of(trace_.node_count(), kNowhere);
    for (uint32_t i = 0; i < plan_.slices.size(); ++i) slice_of[plan_.slices[i].node.index()] = i;
    const std::vector<NodeId> launchers = FindLaunchers(trace_);
    const auto add = [&](NodeId from, uint32_t to, TimelinePlan::Arrow arrow) {
      const uint32_t begin = slice_of[from.index()];
      if (begin == kNowhere || plan_.slices[begin].track == plan_.slices[to].track) return;
      if (plan_.slices[begin].start > plan_.slices[to].start) {
        ++plan_.backward;
        return;
      }
      plan_.flows.push_back({.from = begin, .to = to, .arrow = arrow});
    };
    for (uint32_t to = 0; to < plan_.slices.size(); ++to) {
      const NodeId node = plan_.slices[to].node;
      const NodeId launcher = launchers[node.index()];
      if (launcher) add(launcher, to, TimelinePlan::Arrow::kLaunch);
      const auto deps = trace_.deps(node);
      const auto kinds = trace_.dep_kinds(node);
      for (size_t i = 0; i < deps.size(); ++i) {
        if (deps[i] == launcher) continue;
        add(deps[i], to, static_cast<TimelinePlan::Arrow>(kinds[i]));
      }
    }
  }

  const Trace& trace_;
  TimelinePlan plan_;
  std::map<std::tuple<LaneId, Place, uint64_t, bool>, TrackKey> keys_;
  std::map<TrackKey, uint32_t> tracks_;
};

static_assert(static_cast<int>(TimelinePlan::Arrow::kControl) ==
              static_cast<int>(DepKind::kControl));
static_assert(static_cast<int>(TimelinePlan::Arrow::kData) == static_cast<int>(DepKind::kData));
static_assert(static_cast<int>(TimelinePlan::Arrow::kSync) == static_cast<int>(DepKind::kSync));

std::string_view ArgOf(CommField field) { return Info(field).arg; }

}  // namespace

std::string_view Name(TimelinePlan::Arrow arrow) {
  switch (arrow) {
    case TimelinePlan::Arrow::kControl: return "control";
    case TimelinePlan::Arrow::kData: return "data";
    case TimelinePlan::Arrow::kSync: return "sync";
    case TimelinePlan::Arrow::kLaunch: return "launch";
  }
  return "data";
}

TimelinePlan PlanTimeline(const Trace& trace) { return Planner(trace).Run(); }

void EventArgs::AddInts(std::string_view key, IntListId list, std::string& text) {
  if (!list) return;
  text = fmt::format("[{}]", fmt::join(trace_.ints(list), ", "));
  args_.push_back({key, std::string_view(text)});
}

void EventArgs::AddComm(const Comm& comm) {
  const auto number = [&](std::string_view key, std::optional<int64_t> value) {
    if (value && !key.empty()) args_.push_back({key, *value});
  };
  const auto text = [&](CommField field, std::string_view value) {
    if (!value.empty()) args_.push_back({ArgOf(field), value});
  };
  text(CommField::kName, trace_.text(comm.name));
  if (comm.dtype != DType::kUnknown) text(CommField::kDType, Name(comm.dtype));
  number(ArgOf(CommField::kInElements), comm.in_elements);
  number(ArgOf(CommField::kOutElements), comm.out_elements);
  AddInts(ArgOf(CommField::kInSplit), comm.in_split, in_split_);
  AddInts(ArgOf(CommField::kOutSplit), comm.out_split, out_split_);
  text(CommField::kGroup, trace_.text(comm.group));
  number(ArgOf(CommField::kGroupSize), comm.group_size);
  number(ArgOf(CommField::kSource), comm.src);
  number(ArgOf(CommField::kDestination), comm.dst);
  // Facts without a term in the profiler.
  if (comm.type != CollectiveFromName(trace_.text(comm.name)).value_or(CollectiveType::kUnknown)) {
    text(CommField::kType, Name(comm.type));
  }
  if (comm.bytes) args_.push_back({ArgOf(CommField::kBytes), comm.bytes->count});
  number(ArgOf(CommField::kRoot), comm.root);
  number(ArgOf(CommField::kTag), comm.tag);
  number(ArgOf(CommField::kPriority), comm.priority);
}

// Adds kind facts that category, name and communication facts do not give.
void EventArgs::AddKind(NodeId node, const Comm* comm, bool is_instant) {
  if (IsMemoryEvent(trace_, node)) return;
  const std::string category = EventCategory(trace_, node);
  const ProfileCategory read = FindProfileCategory(category, trace_.name(node));
  const NodeKind kind = trace_.kind(node);
  const std::string_view collective = comm == nullptr ? "" : trace_.text(comm->name);
  if (is_instant || KindOfEvent(read, trace_.name(node), collective) != kind) {
    args_.push_back({kEtKindAttr, Name(kind)});
  }
  if (read.place != trace_.place(node)) args_.push_back({kPlaceArg, Name(trace_.place(node))});
}

const std::vector<EventArg>& EventArgs::Of(NodeId node, bool is_instant) {
  args_.clear();
  const auto add = [&](std::string_view key, const auto& value) {
    if (value) args_.push_back({key, *value});
  };
  add("External id", trace_.external_id(node));
  add("Record function id", trace_.rf_id(node));
  add("Sequence number", trace_.seq_id(node));
  add("Fwd thread id", trace_.fw_tid(node));
  add("correlation", trace_.correlation(node));
  const LaneId lane_id = trace_.lane_id(node);
  if (trace_.place(node) == Place::kDevice && lane_id) {
    const Lane& lane = trace_.lane(lane_id);
    if (lane.device >= 0) args_.push_back({"device", int64_t{lane.device}});
    if (lane.stream >= 0) args_.push_back({"stream", int64_t{lane.stream}});
  }
  const Comm* comm = trace_.comm(node);
  if (comm != nullptr) AddComm(*comm);
  AddKind(node, comm, is_instant);
  const size_t own = args_.size();
  for (const Extra& extra : trace_.extras(node)) {
    const std::string_view key = trace_.text(extra.key);
    if (extra.form != Extra::Form::kJson || key.starts_with(kEventExtraPrefix) ||
        key.starts_with(kEtAttrPrefix)) {
      continue;
    }
    const bool known = std::any_of(args_.begin(), args_.begin() + static_cast<ptrdiff_t>(own),
                                   [&](const EventArg& arg) { return arg.key == key; });
    if (!known) args_.push_back({key, EventArg::Json{trace_.text(extra.text)}});
  }
  return args_;
}

std::string EventCategory(const Trace& trace, NodeId node) {
  for (const Extra& extra : trace.extras(node)) {
    if (extra.form != Extra::Form::kJson || trace.text(extra.key) != kCategoryExtraKey) continue;
    const std::string_view json = trace.text(extra.text);
    // Categories that need escapes are invalid.
    const bool plain =
        json.size() >= 2 && json.starts_with('"') && json.find('\\') == std::string_view::npos;
    if (plain) return std::string(json.substr(1, json.size() - 2));
  }
  if (IsMemoryEvent(trace, node)) return "cpu_instant_event";
  const std::string_view usual = DefaultProfileCategory(trace.kind(node), trace.place(node));
  return std::string(usual.empty() ? Name(trace.kind(node)) : usual);
}

}  // namespace etude
