#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/replay/calibration.h"
#include "src/replay/trial_child.h"
#include "src/torch/replayed_step.h"

namespace etude {

// Returns the storage versions with these numbers, as stored in a Calibration.
std::vector<StorageVersion> Versions(const std::vector<uint32_t>& numbers);

// Tries out the step in a child process, so that this process's heap stays like that of a program
// before its first step. The child inherits the memory. An operator that kills the child is
// skipped. Adds the used CPU time to `time`.
Result<Calibration> TryOutInChild(ReplayedStep& step, Nanos& time);

// Runs the step under observation until no change is needed. Operators that fail are replaced by
// their parts or skipped; those that ran other operators than recorded are replaced by their parts.
Result<Calibration> TryOutHere(ReplayedStep& step, const Announce& announce);

// Applies the result of a trial to the step.
Status FollowTrial(ReplayedStep& step, const Calibration& found);

}  // namespace etude
