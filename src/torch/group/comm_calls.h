#pragma once

#include <string>

#include "src/analysis/comm/comm_model.h"
#include "src/run/calls/comm_log.h"
#include "src/torch/replayed_step.h"

namespace etude {

// Returns the communications that a replay of the step makes, in order.
CommLog CallsOf(const ReplayedStep& step);
// Describes the skipped recorded communications: their number, and the first one with its reason;
// "" if there are none.
std::string SkippedCalls(const ReplayedStep& step);

// Returns the size of the communication `call` of `log`, for a time model.
CommSize SizeOf(const CommLog& log, const CommCall& call);

}  // namespace etude
