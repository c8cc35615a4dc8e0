#pragma once

#include "src/base/result.h"
#include "src/cli/app/command.h"
#include "src/torch/replay_options.h"
#include "src/torch/replayer.h"

namespace etude {

// What --paced does once `report`, all that is known before, is printed as a line of JSON: a step,
// and a line on it, for each line of standard input, or for the line "kernels" one that says which
// of them run. kInternal and the like as the replayer says.
Status ServePacedSteps(Replayer& replayer, GapMode gaps, const ReplayReport& report,
                       const Console& console);

}  // namespace etude
