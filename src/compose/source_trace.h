#pragma once

#include <vector>

#include "src/run/calls/launch.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/trace.h"

namespace etude {

// A trace whose parts are composed, with all its steps as one, and the analyses that every part
// needs. Not movable, because the flow refers to the steps. Refers to the trace.
struct SourceTrace {
  explicit SourceTrace(const Trace& of)
      : trace(of), steps(RecordedStep::All(of)), flow(steps), launchers(FindLaunchers(of)) {}
  SourceTrace(const SourceTrace&) = delete;
  SourceTrace& operator=(const SourceTrace&) = delete;

  bool is_operator(NodeId node) const {
    const uint32_t position = steps.position(node);
    return position != RecordedStep::kNowhere && steps.is_operator(position);
  }
  // Returns the nearest operator around a host node, kNone if there is none.
  NodeId around(NodeId node) const { return steps.enclosing_operator(steps.position(node)); }

  const Trace& trace;
  const RecordedStep steps;
  const DataFlow flow;
  const std::vector<NodeId> launchers;
};

}  // namespace etude
