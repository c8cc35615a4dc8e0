#pragma once

#include "src/base/result.h"
#include "src/synth/dlrm/dlrm_model.h"
#include "src/synth/dlrm/dlrm_plan.h"
#include "src/synth/job/step_job.h"

namespace etude {

// A step of a recommendation model: the stacks of layers on all ranks, each with samples of its
// own, tables where PlaceTables puts them. Each rank has a program of its own. kBadInput as
// CheckDlrmPlan.
Result<StepJob> MakeDlrmJob(const DlrmModel& model, const DlrmPlan& plan);

}  // namespace etude
