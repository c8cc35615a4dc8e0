#include "src/transform/runnable/launch_cost.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "src/run/activity.h"
#include "src/transform/runnable/rank_edit.h"

namespace etude {
namespace {

// A launch or a wait of a host thread.
struct HostMoment {
  Nanos time;
  Nanos begin;  // of a wait
  bool launches = false;
  uint32_t node = 0;  // of the rank: launched, or waited for
};

struct HostMoments {
  std::map<LaneId, std::vector<HostMoment>> of_threads;
  uint32_t lane = 0;  // the first one without nodes
};

Result<HostMoments> FindMoments(const Trace& trace, const RunnableRank& rank) {
  if (!rank.on_device) {
    return BadInput(
        "found a step without device work, expected launches; nearest possible: --scale "
        "host=FACTOR");
  }
  const Launches launches(trace);
  HostMoments found;
  std::map<NodeId, uint32_t> numbers;
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    const RunnableNode& node = rank.nodes[i];
    if (node.lane != RunnableNode::kNone) found.lane = std::max(found.lane, node.lane + 1);
    if (!node.origin || trace.place(node.origin) != Place::kDevice) continue;
    numbers.emplace(node.origin, i);
    const NodeId launcher = launches.launcher(node.origin);
    const auto time = launches.time(node.origin);
    if (!launcher || !time) continue;
    found.of_threads[trace.lane_id(launcher)].push_back(
        {.time = *time, .launches = true, .node = i});
  }
  if (found.of_threads.empty()) {
    return BadInput(
        "found device work of unknown launches, expected a recording of host and device");
  }
  ForEachNode(trace, [&](NodeId node) {
    if (trace.place(node) == Place::kDevice) return;
    const auto thread = found.of_threads.find(trace.lane_id(node));
    const auto end = EndOf(trace, node);
    if (thread == found.of_threads.end() || !end) return;
    const auto deps = trace.deps(node);
    const auto kinds = trace.dep_kinds(node);
    for (size_t i = 0; i < deps.size(); ++i) {
      const auto awaited = numbers.find(deps[i]);
      if (kinds[i] != DepKind::kSync || awaited == numbers.end()) continue;
      thread->second.push_back(
          {.time = *end, .begin = *trace.start(node), .node = awaited->second});
    }
  });
  return found;
}

// Adds the launches of one order of moments to a rank.
class LaunchAdder {
 public:
  LaunchAdder(RankEdit& edit, uint32_t lane) : edit_(edit) {
    launch_.name = edit.NameOf("launch");
    launch_.lane = lane;
    launch_.on_host = true;
  }

  // `time_of` returns the time of a launch. `with_work`: what the host did before a wait precedes
  // it.
  template <typename TimeOf>
  void Add(std::vector<HostMoment>& moments, bool with_work, TimeOf time_of) {
    std::ranges::sort(moments, {}, [](const HostMoment& moment) {
      return std::tuple(moment.time, moment.launches, moment.node);
    });
    for (const HostMoment& moment : moments) {
      if (!moment.launches) {
        if (with_work && last_ && moment.begin > last_->time) {
          AddHost(last_->node, moment.begin - last_->time);
        }
        waited_.push_back(moment.node);
      } else {
        edit_.AddDep(moment.node, AddNode(moment.node, time_of(moment)));
        ++added_;
      }
      last_ = moment;
    }
  }
  // Adds what the host did after the last moment, until `end`.
  void AddRest(Nanos end) {
    if (last_ && end > last_->time) AddHost(last_->node, end - last_->time);
  }

  // Returns the time since the previous moment, or since `begin`.
  Nanos Since(Nanos begin, Nanos time) const { return time - (last_ ? last_->time : begin); }
  uint64_t added() const { return added_; }

 private:
  void AddHost(uint32_t after, Nanos duration) {
    const uint32_t name = std::exchange(launch_.name, edit_.NameOf("host"));
    AddNode(after, duration);
    launch_.name = name;
  }
  uint32_t AddNode(uint32_t after, Nanos duration) {
    launch_.duration = duration;
    const uint32_t number = edit_.AddAfter(after, launch_);
    if (before_) edit_.AddDep(number, *before_);
    for (const uint32_t node : std::exchange(waited_, {})) edit_.AddDep(number, node);
    before_ = number;
    return number;
  }

  RankEdit& edit_;
  RunnableNode launch_;
  std::optional<uint32_t> before_;  // the last launch
  std::optional<HostMoment> last_;
  std::vector<uint32_t> waited_;  // since then
  uint64_t added_ = 0;
};

// Returns the time of the rank's steps, or of all its host nodes if there are none.
Interval HostWindow(const Trace& trace) {
  const std::vector<StepWindow> steps = FindSteps(trace);
  if (!steps.empty()) return {steps.front().window.begin, steps.back().window.end};
  std::optional<Interval> window;
  ForEachNode(trace, [&](NodeId node) {
    const auto end = EndOf(trace, node);
    if (trace.place(node) == Place::kDevice || !end) return;
    const Interval own{*trace.start(node), *end};
    if (!window) window = own;
    window->begin = std::min(window->begin, own.begin);
    window->end = std::max(window->end, own.end);
  });
  return window.value_or(Interval{});
}

}  // namespace

Result<uint64_t> AddLaunches(const Trace& trace, Nanos cost, RunnableRank& rank) {
  ETUDE_ASSIGN_OR_RETURN(HostMoments found, FindMoments(trace, rank));
  RankEdit edit(rank);
  uint64_t added = 0;
  for (auto& [thread, moments] : found.of_threads) {
    LaunchAdder adder(edit, found.lane++);
    adder.Add(moments, /*with_work=*/false, [&](const HostMoment&) { return cost; });
    added += adder.added();
  }
  ETUDE_RETURN_IF_ERROR(edit.Finish());
  return added;
}

Result<uint64_t> AddRecordedLaunches(const Trace& trace, RunnableRank& rank) {
  ETUDE_ASSIGN_OR_RETURN(const HostMoments found, FindMoments(trace, rank));
  std::vector<HostMoment> all;
  for (const auto& [thread, moments] : found.of_threads) {
    all.insert(all.end(), moments.begin(), moments.end());
  }
  const Interval window = HostWindow(trace);
  RankEdit edit(rank);
  LaunchAdder adder(edit, found.lane);
  adder.Add(all, /*with_work=*/true, [&](const HostMoment& moment) {
    return std::max(adder.Since(window.begin, moment.time), Nanos{});
  });
  adder.AddRest(window.end);
  ETUDE_RETURN_IF_ERROR(edit.Finish());
  return adder.added();
}

RemovedGaps RemoveGaps(RunnableRank& rank) {
  RemovedGaps removed;
  for (RunnableNode& node : rank.nodes) {
    if (node.kind != NodeKind::kLabel || !node.duration || node.duration->count == 0) continue;
    removed.time = removed.time + *node.duration;
    node.duration = Nanos{};
    ++removed.nodes;
  }
  return removed;
}

}  // namespace etude
