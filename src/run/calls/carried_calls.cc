#include "src/run/calls/carried_calls.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/run/calls/launch.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

bool SaysNothing(const Trace& trace, NodeId node) {
  const Comm& comm = *trace.comm(node);
  return trace.place(node) == Place::kDevice && trace.kind(node) == NodeKind::kCollective &&
         comm.type == CollectiveType::kUnknown && !comm.group && !comm.bytes;
}

bool IsInsideCommunication(const Trace& trace, NodeId node) {
  constexpr int kMostLevels = 8;  // a backend's work for a call is only a few levels below it
  NodeId at = trace.parent(node);
  for (int level = 0; at && level < kMostLevels; ++level, at = trace.parent(at)) {
    if (IsCommunication(trace.kind(at))) return true;
  }
  return false;
}

// A label or a call, in thread order.
struct OnThread {
  NodeId node;
  NodeId work;  // of a label
};

// Labels of batches, and the host nodes with own communications below them on a device.
struct Launched {
  std::map<NodeId, NodeId> works;  // by label
  std::vector<bool> has_work;      // by node
};

Launched FindLaunched(const Trace& trace) {
  Launched found;
  const std::vector<NodeId> launchers = FindLaunchers(trace);
  found.has_work.resize(trace.node_count());
  for (const auto& [node, comm] : trace.comms()) {
    if (!IsCommunication(trace.kind(node)) || trace.place(node) != Place::kDevice) continue;
    NodeId at = launchers[node.index()];
    NodeId label = SaysNothing(trace, node) ? at : NodeId::None();
    while (label && !IsCoalescedLabel(trace.name(label))) label = trace.parent(label);
    if (label) {
      found.works.emplace(label, node);
      continue;
    }
    for (; at && !found.has_work[at.index()]; at = trace.parent(at)) {
      found.has_work[at.index()] = true;
    }
  }
  return found;
}

}  // namespace

CarriedCalls::CarriedCalls(const Trace& trace) {
  const auto is_candidate = [&](const auto& entry) {
    return IsCommunication(trace.kind(entry.first)) && SaysNothing(trace, entry.first);
  };
  if (std::ranges::none_of(trace.comms(), is_candidate)) return;
  const Launched launched = FindLaunched(trace);
  std::map<LaneId, std::vector<OnThread>> threads;
  for (const auto& [label, work] : launched.works) {
    threads[trace.lane_id(label)].push_back({label, work});
  }
  for (const auto& [node, comm] : trace.comms()) {
    if (!IsCommunication(trace.kind(node)) || trace.place(node) == Place::kDevice) continue;
    if (IsHostThreadLabel(trace.name(node)) || IsInsideCommunication(trace, node)) continue;
    const auto thread = threads.find(trace.lane_id(node));
    if (thread != threads.end()) thread->second.push_back({node, NodeId::None()});
  }
  for (auto& [lane, nodes] : threads) {
    std::ranges::sort(nodes, {}, [&](const OnThread& one) {
      return std::tuple(trace.start(one.node).value_or(Nanos{}), trace.source_id(one.node));
    });
    std::vector<NodeId> open;
    for (const OnThread& one : nodes) {
      if (!one.work) {
        // A call between the start and the end of a batch launches nothing.
        if (launched.has_work[one.node.index()]) {
          open.clear();
        } else {
          open.push_back(one.node);
        }
        continue;
      }
      for (const NodeId call : open) carrier_of_.emplace(call, one.work);
      if (!open.empty()) calls_of_[one.work] = std::move(open);
      open.clear();
    }
  }
}

}  // namespace etude
