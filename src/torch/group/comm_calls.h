#pragma once

#include <string>

#include "src/analysis/comm/comm_model.h"
#include "src/run/calls/comm_log.h"
#include "src/torch/replayed_step.h"

namespace etude {

// The communications that a replay of the step makes, in order; of a rank alone or with others.
CommLog CallsOf(const ReplayedStep& step);
// How many recorded communications it skips, which is the first, and why; "" for none.
std::string SkippedCalls(const ReplayedStep& step);

// What the communication `call` of `log` moves, as a model of its time takes it.
CommSize SizeOf(const CommLog& log, const CommCall& call);

}  // namespace etude
