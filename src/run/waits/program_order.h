#pragma once

#include <functional>
#include <vector>

#include "src/run/waits/order_edge.h"
#include "src/trace/trace.h"

namespace etude {

// Returns, by node, the thread root of a host node whose caller is missing from the trace; kNone
// for all others, and if the thread is unknown.
std::vector<NodeId> ThreadsOfOrphans(const Trace& trace);

// Returns the order in which threads ran their host nodes: each node after its predecessor in the
// depth-first walk of its thread, children ordered by id. Each subtree below a process root is a
// thread, as is a node without a parent and without a known thread. Gloo collectives on their own
// thread form a separate order there, which begins with their caller. The edges never contradict
// nesting, or each other. `lane_of` gives the thread of a node if known from elsewhere than the
// trace.
std::vector<OrderEdge> HostOrder(const Trace& trace,
                                 const std::function<LaneId(NodeId)>& lane_of = {});

// Returns the order in which streams ran their work (IsDeviceWork): each node after the previously
// started one on the same stream. Nodes with an unknown start or stream have none.
std::vector<OrderEdge> StreamOrder(const Trace& trace);

// Returns true for kernels, copies, fills and communication, but not for marks and waits.
bool IsDeviceWork(NodeKind kind);

// Returns true for nodes that stand for a process or a thread, and not for work.
constexpr bool IsRoot(NodeKind kind) {
  return kind == NodeKind::kProcess || kind == NodeKind::kThread;
}

// Returns true if `a` comes after its sibling `b`: siblings are ordered by id.
inline bool ComesLater(const Trace& trace, NodeId a, NodeId b) {
  const uint64_t id_a = trace.source_id(a);
  const uint64_t id_b = trace.source_id(b);
  return id_a != id_b ? id_a > id_b : a > b;
}

// Returns all nodes, each after its parent.
std::vector<NodeId> TopDown(const Trace& trace);

}  // namespace etude
