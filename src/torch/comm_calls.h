#pragma once

#include "src/analysis/comm_log.h"
#include "src/torch/replayed_step.h"

namespace etude {

// The communications that a replay of the step makes, in order; of a rank alone or with others.
CommLog CallsOf(const ReplayedStep& step);

}  // namespace etude
