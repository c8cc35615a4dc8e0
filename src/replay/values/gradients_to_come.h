#pragma once

#include <vector>

#include "src/replay/replay_plan.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"

namespace etude {

// Plans which arguments had a gradient to come when operators were recorded: fills
// PlannedOp::differentiated for the operators of which `made_nodes`, by position in the step,
// holds. They are what such operators returned and wrote to before, through whichever view, and the
// parameters: of the memory from outside what others change, as an optimizer does, or, where none
// do, all of it. Of an operator that none of these reaches all arguments had one.
void PlanGradients(const RecordedStep& step, const DataFlow& flow,
                   const std::vector<bool>& made_nodes, ReplayPlan& plan);

}  // namespace etude
