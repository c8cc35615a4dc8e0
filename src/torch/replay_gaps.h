#pragma once

#include <optional>

#include "src/analysis/time/host_gaps.h"
#include "src/torch/replayed_step.h"

namespace etude {

// The recorded program's gaps around the operators that are replayed, shortened by what recording
// made the step longer: `scale` says by how much. Compiled code and operators that are skipped
// leave none unless time stands in for them, nor do waits for communications: the replay waits for
// those it has by itself. Own code of operators whose parts run instead is in the gaps.
struct ReplayGaps {
  HostGaps gaps;
  double scale = 1.0;
};

// nullopt where the trace does not say when the operators of the step ran, but for a few.
std::optional<ReplayGaps> FindReplayGaps(const ReplayedStep& step);

}  // namespace etude
