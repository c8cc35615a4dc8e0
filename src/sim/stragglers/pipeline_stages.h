#pragma once

#include <cstddef>
#include <vector>

#include "src/sim/program/sim_program.h"

namespace etude {

// Ranks of each pipeline stage, ascending; the first stage first.
using PipelineStages = std::vector<std::vector<size_t>>;

// Finds the pipeline stages that ranks form, by their messages: a stage sends to the next one
// before it receives from it, and the first stage sends before it receives anything. The last stage
// may send to the first one, as with several chunks of layers. Empty if messages do not connect all
// ranks in this way.
PipelineStages FindPipelineStages(const SimWorkload& workload);

}  // namespace etude
