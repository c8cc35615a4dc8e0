#pragma once

#include <cstdint>
#include <vector>

#include "src/synth/dlrm/dlrm_plan.h"
#include "src/synth/job/step_job.h"

namespace etude {

// Bytes of the collectives that exchange lookups, on the rank with most, because Chakra has one
// size for all.
struct LookupTraffic {
  Bytes indices;   // all-to-all
  Bytes pooled;    // all-to-all of sums, and of their gradients
  Bytes partial;   // reduce-scatter of sums over a share of the rows
  Bytes gathered;  // all-gather of their gradients
};
LookupTraffic LookupTrafficOf(const DlrmModel& model, const DlrmPlan& plan,
                              const TablePlacement& placement);

// Returns the program of a rank in a step. Its group 0 contains all ranks. The plan must have
// passed CheckDlrmPlan.
std::vector<StepWork> DlrmProgram(const DlrmModel& model, const DlrmPlan& plan,
                                  const TablePlacement& placement, int64_t rank);

}  // namespace etude
