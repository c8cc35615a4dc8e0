#include "src/analysis/time/launched_work.h"

#include <algorithm>

#include "src/run/activity.h"

namespace etude {
namespace {

// Returns the nearest host node above, or kNone.
NodeId HostAbove(const Trace& trace, NodeId node) {
  while (node && trace.place(node) == Place::kDevice) node = trace.parent(node);
  return node;
}

}  // namespace

std::vector<LaunchedWork> FindLaunchedWork(const Trace& linked) {
  std::vector<LaunchedWork> all;
  ForEachNode(linked, [&](NodeId node) {
    if (linked.place(node) != Place::kDevice) return;
    if (DeviceActivity(linked, node) == Activity::kNone) return;
    const auto duration = linked.duration(node);
    const NodeId host = HostAbove(linked, node);
    if (!host || !duration) return;
    all.push_back({.host = linked.source_id(host),
                   .lane = linked.lane_id(node),
                   .start = linked.start(node),
                   .time = *duration});
  });
  std::ranges::stable_sort(all, {}, &LaunchedWork::host);
  return all;
}

}  // namespace etude
