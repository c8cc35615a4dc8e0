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

// Duration of `node` without what it called, as far as the trace says it and no times are compared.
std::optional<Nanos> StatedOwnTime(const Trace& trace, NodeId node);

// When the threads of a trace ran what, by the clock alone: PyTorch's observer mixes up threads
// that work for one another (gradients, communication), its profiler does not.
class HostTimes {
 public:
  // `waits`: what is known of waiting beyond the sync dependencies of the trace. nullopt if a node
  // has a duration but no start or thread, or none has a duration. O(n log n).
  static std::optional<HostTimes> Find(const Trace& trace, std::span<const OrderEdge> waits);

  // Time that a thread spent in the node itself: neither in what it called nor waiting there for
  // what other threads did. nullopt for nodes without times.
  std::optional<Nanos> own(NodeId node) const { return own_[node.index()]; }
  // When the thread waited for what others did: from when it last began something or ended an
  // operator until that was over. Empty for threads without times.
  const TimeSet& waits(LaneId lane) const;
  // The node of its thread that began before it, of those that do not run beside it
  // (RunsBesideItsThread); kNone if none did.
  NodeId before(NodeId node) const { return before_[node.index()]; }
  // Whether `a` began before `b`, in an order of all nodes with times.
  bool Precedes(NodeId a, NodeId b) const;

  // Time that a thread spent in labels (a program's own code) behind other things in them, or
  // behind a wait.
  struct Stretch {
    NodeId label;  // the last of them
    Nanos time;
  };
  // Where stretches lie: by a node that the thread began before or after.
  struct Stretches {
    std::unordered_map<NodeId, Stretch> ahead;   // of it, and of what it waited for
    std::unordered_map<NodeId, Stretch> woken;   // ahead of it, when it had waited
    std::unordered_map<NodeId, Stretch> behind;  // it, the last one of its thread
    std::unordered_map<NodeId, Nanos> of_label;  // how much of `own` is in any
  };
  const Stretches& stretches() const { return stretches_; }

 private:
  std::vector<std::optional<Nanos>> own_;
  std::map<LaneId, TimeSet> waits_;
  std::vector<NodeId> before_;
  std::vector<uint32_t> position_;  // UINT32_MAX: no times
  Stretches stretches_;
};

}  // namespace etude
