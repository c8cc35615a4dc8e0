#pragma once

#include "src/replay/replay_report.h"
#include "src/torch/replayed_step.h"

namespace etude {

// Puts into the report what can be said before the first timed step: what runs, what does not and
// why, how much of the recorded time that is, and how much memory it takes.
void DescribeReplay(const ReplayedStep& step, ReplayReport& report);

}  // namespace etude
