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
  bool launches = false;
  uint32_t node = 0;  // of the rank: launched, or waited for
};

}  // namespace

Result<uint64_t> AddLaunches(const Trace& trace, Nanos cost, RunnableRank& rank) {
  if (!rank.on_device) {
    return BadInput(
        "found a step without device work, expected launches; nearest possible: --scale "
        "host=FACTOR");
  }
  const Launches launches(trace);
  std::map<LaneId, std::vector<HostMoment>> threads;
  std::map<NodeId, uint32_t> numbers;
  uint32_t lane = 0;
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    const RunnableNode& node = rank.nodes[i];
    if (node.lane != RunnableNode::kNone) lane = std::max(lane, node.lane + 1);
    if (!node.origin || trace.place(node.origin) != Place::kDevice) continue;
    numbers.emplace(node.origin, i);
    const NodeId launcher = launches.launcher(node.origin);
    const auto time = launches.time(node.origin);
    if (!launcher || !time) continue;
    threads[trace.lane_id(launcher)].push_back({.time = *time, .launches = true, .node = i});
  }
  if (threads.empty()) {
    return BadInput(
        "found device work of unknown launches, expected a recording of host and device");
  }
  ForEachNode(trace, [&](NodeId node) {
    if (trace.place(node) == Place::kDevice) return;
    const auto thread = threads.find(trace.lane_id(node));
    const auto end = EndOf(trace, node);
    if (thread == threads.end() || !end) return;
    const auto deps = trace.deps(node);
    const auto kinds = trace.dep_kinds(node);
    for (size_t i = 0; i < deps.size(); ++i) {
      const auto found = numbers.find(deps[i]);
      if (kinds[i] != DepKind::kSync || found == numbers.end()) continue;
      thread->second.push_back({.time = *end, .node = found->second});
    }
  });
  RankEdit edit(rank);
  uint64_t added = 0;
  for (auto& [thread, moments] : threads) {
    std::ranges::sort(moments, {}, [](const HostMoment& moment) {
      return std::tuple(moment.time, moment.launches, moment.node);
    });
    RunnableNode launch;
    launch.name = edit.NameOf("launch");
    launch.lane = lane++;
    launch.duration = cost;
    launch.on_host = true;
    std::optional<uint32_t> before;
    std::vector<uint32_t> waited;
    for (const HostMoment& moment : moments) {
      if (!moment.launches) {
        waited.push_back(moment.node);
        continue;
      }
      const uint32_t number = edit.AddAfter(moment.node, launch);
      if (before) edit.AddDep(number, *before);
      for (const uint32_t node : std::exchange(waited, {})) edit.AddDep(number, node);
      edit.AddDep(moment.node, number);
      before = number;
      ++added;
    }
  }
  ETUDE_RETURN_IF_ERROR(edit.Finish());
  return added;
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
