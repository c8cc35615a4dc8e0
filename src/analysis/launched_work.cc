#include "src/analysis/launched_work.h"

#include <map>

#include "src/analysis/activity.h"

namespace etude {
namespace {

// The nearest node above that is not a device's, or kNone.
NodeId HostAbove(const Trace& trace, NodeId node) {
  while (node && trace.place(node) == Place::kDevice) node = trace.parent(node);
  return node;
}

}  // namespace

std::vector<LaunchedWork> FindLaunchedWork(const Trace& linked) {
  std::map<uint64_t, Nanos> by_host;
  ForEachNode(linked, [&](NodeId node) {
    if (linked.place(node) != Place::kDevice) return;
    if (DeviceActivity(linked, node) == Activity::kNone) return;
    const auto duration = linked.duration(node);
    const NodeId host = HostAbove(linked, node);
    if (!host || !duration) return;
    Nanos& time = by_host[linked.source_id(host)];
    time = time + *duration;
  });
  std::vector<LaunchedWork> all;
  all.reserve(by_host.size());
  for (const auto& [host, time] : by_host) all.push_back({.host = host, .time = time});
  return all;
}

}  // namespace etude
