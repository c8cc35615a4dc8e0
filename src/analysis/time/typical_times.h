#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/analysis/time/host_gaps.h"
#include "src/base/units.h"
#include "src/run/step/recorded_step.h"

namespace etude {

// Times of a recorded step, each the median over recorded steps, to exclude one-time effects (an
// interrupt, a cold cache, the recorder's start). Operators use the steps of the same kind. Gaps
// use all steps with the same operators, on tensors of any sizes, because Python and autograd do
// not work on elements. Refers to the step and its trace.
class TypicalTimes {
 public:
  // Max number of steps examined.
  static constexpr size_t kStepsMax = 16;
  // `alike` are the numbers of the steps of the same kind as `step`, and `label` is the one it was
  // narrowed to. If empty, only its own times count.
  TypicalTimes(const RecordedStep& step, std::string_view label, std::span<const size_t> alike);

  // Returns the duration of a node of the step, nullopt if unknown; for other nodes the recorded
  // one.
  std::optional<Nanos> duration(NodeId node) const;
  // Returns the median gaps (FindHostGaps) over the steps; those of the step alone if it waited for
  // communications.
  std::optional<HostGaps> Gaps(const HostGapsOf& of) const;
  // Returns the median time, from mark to mark, of the steps used for gaps, itself included;
  // nullopt if unknown.
  std::optional<Nanos> step() const { return step_time_; }

 private:
  // Another step with the same nodes, in the same order.
  struct Twin {
    std::vector<NodeId> nodes;
    NodeId mark;
  };

  void FindDurations(const std::vector<size_t>& twins);

  const RecordedStep& step_;
  std::vector<Twin> twins_;
  std::vector<std::optional<Nanos>> durations_;  // by position; empty if there is only one step
  std::optional<Nanos> step_time_;
};

}  // namespace etude
