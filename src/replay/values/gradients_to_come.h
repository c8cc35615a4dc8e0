#pragma once

#include <vector>

#include "src/replay/replay_plan.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"

namespace etude {

// Plans which arguments had a gradient to come when operators were recorded. Fills
// PlannedOp::differentiated for operators with `made_nodes` (by position in the step). Such
// arguments are results and written arguments of earlier operators with `made_nodes`, through any
// view, and parameters: outside memory that other operators change, as an optimizer does; all
// outside memory if no operator does. If none of these reaches an operator, all of its arguments
// count.
void PlanGradients(const RecordedStep& step, const DataFlow& flow,
                   const std::vector<bool>& made_nodes, ReplayPlan& plan);

}  // namespace etude
