#include "src/analysis/launched_work.h"

#include <map>

namespace etude {
namespace {

// The nearest node above that is not a device's, or kNone.
NodeId HostAbove(const Trace& trace, NodeId node) {
  NodeId above = trace.parent(node);
  while (above && above != node && trace.place(above) == Place::kDevice) {
    node = above;
    above = trace.parent(node);
  }
  return above == node ? NodeId::None() : above;
}

}  // namespace

std::vector<LaunchedWork> FindLaunchedWork(const Trace& linked) {
  std::map<uint64_t, LaunchedWork> by_host;
  ForEachNode(linked, [&](NodeId node) {
    const NodeKind kind = linked.kind(node);
    if (linked.place(node) != Place::kDevice || kind == NodeKind::kSync ||
        kind == NodeKind::kLabel) {
      return;
    }
    const auto duration = linked.duration(node);
    const NodeId host = HostAbove(linked, node);
    if (!host || !duration) return;
    LaunchedWork& work = by_host[linked.source_id(host)];
    work.host = linked.source_id(host);
    ++work.pieces;
    work.time = work.time + *duration;
  });
  std::vector<LaunchedWork> all;
  all.reserve(by_host.size());
  for (const auto& [id, work] : by_host) all.push_back(work);
  return all;
}

}  // namespace etude
