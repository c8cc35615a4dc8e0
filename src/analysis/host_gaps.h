#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "src/analysis/recorded_step.h"
#include "src/base/units.h"

namespace etude {

// The time of a recorded step in which no operator ran on any thread: Python, autograd's engine,
// waiting. What recording itself took is in it.
struct HostGaps {
  std::vector<Nanos> before;  // parallel to the operators: since what had ended last
  Nanos after;                // from the last end to the end of the step

  Nanos total() const;
};

// The gaps around `operators`, of which none contains another. While one of `others` ran there was
// no gap either: what precedes it belongs to the operator that comes next. `duration` gives a
// node's, or nullopt. nullopt if the step has no mark, or a node of these has no time.
std::optional<HostGaps> FindHostGaps(const RecordedStep& step, std::span<const NodeId> operators,
                                     std::span<const NodeId> others,
                                     const std::function<std::optional<Nanos>(NodeId)>& duration);

}  // namespace etude
