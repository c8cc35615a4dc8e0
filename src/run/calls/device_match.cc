#include "src/run/calls/device_match.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "src/run/calls/host_match.h"
#include "src/run/calls/launch.h"
#include "src/run/waits/program_order.h"

namespace etude {
namespace {

constexpr std::array<EventLinkInfo, kEventLinkCount> kEventLinkInfos = {{
    {"host_linked", "operators and labels with a host node"},
    {"host_unlinked", "operators and labels without a host node"},
    {"launches", "runtime calls that launched device work"},
    {"other_runtime_calls", "runtime calls that launched no recorded work"},
    {"device_by_correlation", "device work linked by its launch"},
    {"device_by_external_id", "device work linked only by External id"},
    {"device_without_launch", "device work whose launch was not recorded"},
    {"device_without_operator", "device work launched outside all operators of the host trace"},
    {"device_outside", "device work launched before or after the time of the host trace"},
    {"syncs", "waits of streams and events"},
    {"device_labels", "labels on the device timeline"},
    {"others", "profiler spans, and events of unknown categories"},
}};

EventLink FirstLink(const Trace& device, NodeId event, NodeId node) {
  switch (device.place(event)) {
    case Place::kUnknown: return EventLink::kOther;
    case Place::kHost:
      if (IsHostEvent(device, event)) {
        return node ? EventLink::kHostNode : EventLink::kHostUnlinked;
      }
      return device.kind(event) == NodeKind::kRuntime ? EventLink::kRuntime : EventLink::kOther;
    case Place::kDevice: break;
  }
  if (IsDeviceWork(device.kind(event))) return EventLink::kOrphanNoLaunch;
  if (device.kind(event) == NodeKind::kSync) return EventLink::kSync;
  return device.kind(event) == NodeKind::kLabel ? EventLink::kDeviceLabel : EventLink::kOther;
}

class DeviceMatcher {
 public:
  DeviceMatcher(const Trace& device, const std::vector<NodeId>& nodes)
      : device_(device), nodes_(nodes) {}

  DeviceMatch Run() {
    const size_t count = device_.node_count();
    match_.launches.resize(count);
    match_.operators.resize(count);
    match_.links.reserve(count);
    ForEachNode(device_, [&](NodeId event) {
      match_.links.push_back(FirstLink(device_, event, nodes_[event.index()]));
      if (IsWork(event)) work_.push_back(event);
    });
    FindLaunches();
    external_ids_count_ = !ExternalIdsAreCorrelations();
    FindCallers();
    FindCoveredTime();
    for (const NodeId event : work_) LinkWork(event);
    return std::move(match_);
  }

 private:
  bool IsWork(NodeId event) const {
    return match_.links[event.index()] == EventLink::kOrphanNoLaunch;
  }

  // Accepts any runtime or driver call: the correlation proves that it launched the work.
  void FindLaunches() {
    std::unordered_map<int64_t, NodeId> calls;
    std::unordered_map<int64_t, uint32_t> repeated;
    ForEachNode(device_, [&](NodeId event) {
      if (match_.links[event.index()] != EventLink::kRuntime) return;
      const auto correlation = LaunchCorrelation(device_, event);
      if (correlation && !calls.emplace(*correlation, event).second) ++repeated[*correlation];
    });
    for (const NodeId event : work_) {
      const auto correlation = LaunchCorrelation(device_, event);
      const auto call = correlation ? calls.find(*correlation) : calls.end();
      if (call == calls.end()) continue;
      match_.launches[event.index()] = call->second;
      match_.links[call->second.index()] = EventLink::kLaunch;
      if (repeated.contains(*correlation)) ++match_.ambiguous;
    }
  }

  // Old profilers wrote the correlation as External id of runtime calls and device work; then it
  // does not identify operators.
  bool ExternalIdsAreCorrelations() const {
    uint64_t equal = 0;
    uint64_t both = 0;
    ForEachNode(device_, [&](NodeId event) {
      const EventLink link = match_.links[event.index()];
      if (link == EventLink::kHostNode || link == EventLink::kHostUnlinked) return;
      const auto external_id = device_.external_id(event);
      const auto correlation = LaunchCorrelation(device_, event);
      if (!external_id || !correlation) return;
      ++both;
      equal += *external_id == *correlation ? 1 : 0;
    });
    return both != 0 && equal * 10 >= both * 9;
  }

  std::optional<int64_t> ExternalId(NodeId event) const {
    const auto id = device_.external_id(event);
    return external_ids_count_ && id && *id > 0 ? id : std::nullopt;
  }

  Nanos End(NodeId event) const {
    return *device_.start(event) + device_.duration(event).value_or(Nanos{0});
  }

  static bool IsCall(EventLink link) {
    return link == EventLink::kLaunch || link == EventLink::kRuntime;
  }

  // Walks each lane in order of time with a stack of the open host events.
  void FindCallers() {
    match_.callers.resize(device_.node_count());
    // In order of time on each lane; of events that begin together, the longest first and calls
    // last.
    struct Timed {
      LaneId lane;
      Nanos start;
      bool is_call;
      Nanos duration;
      NodeId event;
    };
    std::vector<Timed> events;
    ForEachNode(device_, [&](NodeId event) {
      const EventLink link = match_.links[event.index()];
      const bool is_call = IsCall(link);
      const auto start = device_.start(event);
      if (!is_call && link != EventLink::kHostNode && link != EventLink::kHostUnlinked) return;
      if (!start) return;
      const Nanos duration = device_.duration(event).value_or(Nanos{});
      events.push_back({device_.lane_id(event), *start, is_call, duration, event});
    });
    std::ranges::sort(events, [](const Timed& a, const Timed& b) {
      if (a.lane != b.lane) return a.lane < b.lane;
      if (a.start != b.start) return a.start < b.start;
      if (a.is_call != b.is_call) return b.is_call;
      return a.duration != b.duration ? b.duration < a.duration : a.event < b.event;
    });
    std::vector<NodeId> open;
    LaneId lane;
    for (const auto& [on, start, is_call, duration, event] : events) {
      if (on != lane) open.clear();
      lane = on;
      // Events that end at this very moment stay open: times of whole microseconds are not exact
      // enough.
      while (!open.empty() && End(open.back()) < start) open.pop_back();
      if (is_call) {
        match_.callers[event.index()] = Innermost(open, event);
      } else {
        open.push_back(event);
      }
    }
  }

  // Returns true if most of the call lies after the end of an event that was open when it began:
  // the clocks of a native capture and of its devices' profile always differ slightly.
  bool IsBehind(NodeId call, NodeId event) const {
    const Nanos end = End(event);
    return End(call) > end && End(call) - end > end - *device_.start(call);
  }

  // Returns the host node of the innermost open event that has the call's External id; without one,
  // of the innermost event that is not over, preferably one that did not end just after the call
  // began. The node is that of the event itself, or of the nearest open event around it.
  NodeId Innermost(const std::vector<NodeId>& open, NodeId call) const {
    // Programs do not nest that deep; hostile traces may.
    constexpr size_t kLevels = 4096;
    const size_t outermost = open.size() < kLevels ? 0 : open.size() - kLevels;
    const Nanos start = *device_.start(call);
    const auto external_id = ExternalId(call);
    size_t found = open.size();
    if (external_id) {
      for (size_t i = open.size(); i-- > outermost && found == open.size();) {
        if (device_.external_id(open[i]) == external_id && End(open[i]) >= start) found = i;
      }
    }
    const bool by_id = found != open.size();
    NodeId almost_over;
    for (size_t i = by_id ? found + 1 : open.size(); i-- > outermost;) {
      const bool around = End(open[i]) > start || (by_id && i == found) ||
                          (End(open[i]) == start && *device_.start(open[i]) == start);
      if (!around || !nodes_[open[i].index()]) continue;
      if (by_id || !IsBehind(call, open[i])) return open[i];
      if (!almost_over) almost_over = open[i];
    }
    return almost_over;
  }

  // Finds the matched host event with the External id; the first, if several.
  NodeId ByExternalId(NodeId event) {
    const auto id = ExternalId(event);
    if (!id) return NodeId::None();
    if (!indexed_) {
      ForEachNode(device_, [&](NodeId candidate) {
        const auto candidate_id = device_.external_id(candidate);
        if (match_.links[candidate.index()] != EventLink::kHostNode || !candidate_id) return;
        by_external_id_.emplace(*candidate_id, candidate);
      });
      indexed_ = true;
    }
    const auto found = by_external_id_.find(*id);
    return found == by_external_id_.end() ? NodeId::None() : found->second;
  }

  void LinkWork(NodeId event) {
    const NodeId launch = match_.launches[event.index()];
    EventLink& link = match_.links[event.index()];
    NodeId& op = match_.operators[event.index()];
    if (launch) op = match_.callers[launch.index()];
    if (op) {
      link = EventLink::kByCorrelation;
      return;
    }
    op = ByExternalId(event);
    if (!op && launch) op = ByExternalId(launch);
    if (op) {
      link = EventLink::kByExternalId;
    } else {
      link = launch ? EventLink::kOrphanNoOperator : EventLink::kOrphanNoLaunch;
      if (launch && !IsCovered(launch)) link = EventLink::kOutside;
    }
  }

  // The host trace covers the time from the first to the last matched event.
  void FindCoveredTime() {
    ForEachNode(device_, [&](NodeId event) {
      if (!nodes_[event.index()] || !device_.start(event)) return;
      covered_begin_ = std::min(covered_begin_, *device_.start(event));
      covered_end_ = std::max(covered_end_, End(event));
    });
  }
  bool IsCovered(NodeId launch) const {
    const auto start = device_.start(launch);
    return !start || (*start >= covered_begin_ && *start <= covered_end_);
  }

  const Trace& device_;
  const std::vector<NodeId>& nodes_;
  DeviceMatch match_;
  std::vector<NodeId> work_;
  bool external_ids_count_ = true;
  bool indexed_ = false;
  Nanos covered_begin_{INT64_MAX};
  Nanos covered_end_{INT64_MIN};
  std::unordered_map<int64_t, NodeId> by_external_id_;
};

}  // namespace

const EventLinkInfo& Info(EventLink link) { return kEventLinkInfos[static_cast<size_t>(link)]; }

DeviceMatch MatchDevice(const Trace& device, const std::vector<NodeId>& nodes) {
  return DeviceMatcher(device, nodes).Run();
}

}  // namespace etude
