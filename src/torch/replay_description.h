#pragma once

#include "src/replay/replay_report.h"
#include "src/torch/replayed_step.h"

namespace etude {

// Fills the report with facts that are known before the first timed step: operators that run,
// skipped operators with reasons, their share of the recorded time, and memory.
void DescribeReplay(const ReplayedStep& step, ReplayReport& report);

}  // namespace etude
