#pragma once

#include "src/base/result.h"
#include "src/cli/app/command.h"
#include "src/torch/replay_options.h"
#include "src/torch/replayer.h"

namespace etude {

// Serves --paced: prints `report`, with all facts known in advance, as a line of JSON. Then, for
// each line of standard input, runs a step and prints a line about it; for the line "kernels" it
// prints which kernels run. Returns the replayer's errors.
Status ServePacedSteps(Replayer& replayer, GapMode gaps, const ReplayReport& report,
                       const Console& console);

}  // namespace etude
