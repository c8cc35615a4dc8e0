#pragma once

#include <functional>
#include <vector>

#include "src/run/waits/order_edge.h"
#include "src/trace/trace.h"

namespace etude {

// By node: for a host node whose caller is not in the trace, the root of its thread, below which it
// belongs; kNone for all others, and where the thread is not known.
std::vector<NodeId> ThreadsOfOrphans(const Trace& trace);

// The order in which threads ran their host nodes: each node after the one before it in the depth
// first walk of its thread, children in the order of their ids. What is below a process root is a
// thread each, and so is what has no parent and is not of a known thread. Collectives of Gloo's on
// a thread of their own are an order of their own there, which begins with what called them. The
// edges never contradict nesting, or each other.
// `lane_of`: on which thread a node ran, where that is known otherwise than by the trace.
std::vector<OrderEdge> HostOrder(const Trace& trace,
                                 const std::function<LaneId(NodeId)>& lane_of = {});

// The order in which streams ran their work (IsDeviceWork): each node after the one that started
// before it on the same stream. Nodes of unknown start or stream have none.
std::vector<OrderEdge> StreamOrder(const Trace& trace);

// Kernels, copies, fills and communication, but no marks and waits.
bool IsDeviceWork(NodeKind kind);

// Stands for a process or a thread, and for nothing that ran.
constexpr bool IsRoot(NodeKind kind) {
  return kind == NodeKind::kProcess || kind == NodeKind::kThread;
}

// Whether `a` comes behind its sibling `b`: siblings are in the order of their ids.
inline bool ComesLater(const Trace& trace, NodeId a, NodeId b) {
  const uint64_t id_a = trace.source_id(a);
  const uint64_t id_b = trace.source_id(b);
  return id_a != id_b ? id_a > id_b : a > b;
}

// All nodes, each behind its parent.
std::vector<NodeId> TopDown(const Trace& trace);

}  // namespace etude
