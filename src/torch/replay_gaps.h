#pragma once

#include <optional>

#include "src/analysis/time/host_gaps.h"
#include "src/torch/replayed_step.h"

namespace etude {

// Gaps of the recorded program around the replayed operators, scaled by `scale` to remove recording
// overhead. Compiled code and skipped operators leave no gaps unless time replaces them. Waits for
// communications are excluded, because the replay has its own. A replaced operator's own code
// counts as a gap.
struct ReplayGaps {
  HostGaps gaps;
  double scale = 1.0;
};

// Returns the gaps; nullopt if the trace lacks times for more than a few of the step's operators.
std::optional<ReplayGaps> FindReplayGaps(const ReplayedStep& step);

}  // namespace etude
