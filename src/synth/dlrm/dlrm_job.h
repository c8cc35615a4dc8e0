#pragma once

#include "src/base/result.h"
#include "src/synth/dlrm/dlrm_model.h"
#include "src/synth/dlrm/dlrm_plan.h"
#include "src/synth/job/step_job.h"

namespace etude {

// Makes a step of a recommendation model: the stacks of layers on all ranks, each with its own
// samples, and tables placed by PlaceTables. Each rank has its own program. kBadInput as in
// CheckDlrmPlan.
Result<StepJob> MakeDlrmJob(const DlrmModel& model, const DlrmPlan& plan);

}  // namespace etude
