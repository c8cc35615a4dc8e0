#pragma once

#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/base/container/intervals.h"
#include "src/run/waits/order_edge.h"
#include "src/trace/trace.h"

namespace etude {

// Returns the recorded duration of `node` without its callees, if times need not be compared.
std::optional<Nanos> StatedOwnTime(const Trace& trace, NodeId node);

// Times of a trace's threads by the clock alone: PyTorch's profiler, in contrast to its observer,
// keeps threads apart that work for one another (gradients, communication).
class HostTimes {
 public:
  // Finds the times. `waits` are those beyond the sync dependencies of the trace. nullopt if a node
  // has a duration but no start or thread, or if none has a duration. O(n log n).
  static std::optional<HostTimes> Find(const Trace& trace, std::span<const OrderEdge> waits);

  // Returns the time that a thread spent in the node itself, outside its callees and without
  // waiting for other threads. nullopt for nodes without times.
  std::optional<Nanos> own(NodeId node) const { return own_[node.index()]; }
  // Returns the times in which the thread waited for others: from the last begin of a node or end
  // of an operator until the awaited work was over. Empty for threads without times.
  const TimeSet& waits(LaneId lane) const;
  // Returns the work of other threads that ended before the node began, and for which its thread
  // had waited. Of several labels begun after the wait, and the node inside them that is known to
  // have waited, that is the first one.
  std::span<const NodeId> awaited(NodeId node) const;
  // Returns the preceding node on its thread, except nodes that run beside it
  // (RunsBesideItsThread); kNone if there is none.
  NodeId before(NodeId node) const { return before_[node.index()]; }
  // Returns true if `a` began before `b`, in an order of all nodes with times.
  bool Precedes(NodeId a, NodeId b) const;

  // Time that a thread spent in labels (the program's own code) after other nodes in them, or after
  // a wait.
  struct Stretch {
    NodeId label;  // the last one
    Nanos time;
  };
  // Position of stretches, by an adjacent node of the thread.
  struct Stretches {
    std::unordered_map<NodeId, Stretch> ahead;   // before the node and its wait
    std::unordered_map<NodeId, Stretch> woken;   // before the node, after its wait
    std::unordered_map<NodeId, Stretch> behind;  // after the node, the last one of its thread
    std::unordered_map<NodeId, Nanos> of_label;  // total part of `own`
  };
  const Stretches& stretches() const { return stretches_; }

 private:
  void FindAwaited(const Trace& trace, std::span<const OrderEdge> waits,
                   std::span<const NodeId> nodes);

  std::vector<std::optional<Nanos>> own_;
  std::map<LaneId, TimeSet> waits_;
  std::unordered_map<NodeId, std::vector<NodeId>> awaited_;
  std::vector<NodeId> before_;
  std::vector<uint32_t> position_;  // UINT32_MAX: no times
  Stretches stretches_;
};

}  // namespace etude
