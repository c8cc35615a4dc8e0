#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/replay/calibration.h"
#include "src/replay/trial_child.h"
#include "src/torch/replayed_step.h"

namespace etude {

// Storage versions of their numbers, which a Calibration has.
std::vector<StorageVersion> Versions(const std::vector<uint32_t>& numbers);

// Tries the step out in a child process, so that this one's heap stays like that of a program that
// starts its first step. The child finds the memory made. An operator that kills the child is
// skipped. Adds to `time` the CPU time that it took.
Result<Calibration> TryOutInChild(ReplayedStep& step, Nanos& time);

// Runs the step under observation until nothing needs to be changed: operators that fail are
// replaced by their parts or skipped, and those that ran other operators than recorded are
// replaced by their parts.
Result<Calibration> TryOutHere(ReplayedStep& step, const Announce& announce);

// Brings the step to where the trial's was at its end.
Status FollowTrial(ReplayedStep& step, const Calibration& found);

}  // namespace etude
