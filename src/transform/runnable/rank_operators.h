#pragma once

#include "src/run/activity.h"
#include "src/trace/trace.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// Operators of the nodes of a rank made of `trace`, which must outlive this object.
class RankOperators {
 public:
  explicit RankOperators(const Trace& trace) : trace_(&trace), launches_(trace) {}

  // Returns the innermost operator that did or launched the work of a node; kNone if unknown.
  NodeId OperatorOf(const RunnableNode& node) const;
  const Launches& launches() const { return launches_; }

 private:
  const Trace* trace_;
  Launches launches_;
};

}  // namespace etude
