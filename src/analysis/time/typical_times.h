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

// The times of a recorded step, each the median over recorded steps, so that what only one of them
// met (an interrupt, a cold cache, the recorder's own beginning) does not count: of operators over
// the steps of its kind, of gaps over all that ran the same operators, on tensors of whatever
// sizes, because Python and autograd do not work on their elements. Refers to the step and its
// trace.
class TypicalTimes {
 public:
  // At most so many steps are looked at.
  static constexpr size_t kStepsMax = 16;
  // `alike` are the steps of the kind of `step` by their numbers, and `label` what it was narrowed
  // to. Empty: its own times count alone.
  TypicalTimes(const RecordedStep& step, std::string_view label, std::span<const size_t> alike);

  // Of a node of the step, nullopt where it is unknown; of other nodes the trace's own.
  std::optional<Nanos> duration(NodeId node) const;
  // FindHostGaps of each of the steps, each gap the median; of the step alone where it waited for
  // communications.
  std::optional<HostGaps> Gaps(const HostGapsOf& of) const;
  // Of the steps whose gaps count, itself included, from mark to mark; nullopt if unknown.
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
