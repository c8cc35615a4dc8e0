#include "src/synth/dlrm/dlrm_job.h"

#include <utility>
#include <vector>

#include "src/synth/dlrm/dlrm_program.h"

namespace etude {

Result<StepJob> MakeDlrmJob(const DlrmModel& model, const DlrmPlan& plan) {
  ETUDE_RETURN_IF_ERROR(CheckDlrmPlan(model, plan));
  ETUDE_ASSIGN_OR_RETURN(Mesh mesh, Mesh::Make({{.name = "dp", .size = plan.ranks}}));
  const TablePlacement placement = PlaceTables(model, plan);
  std::vector<std::vector<StepWork>> programs;
  std::vector<StepStates> states;
  for (int64_t rank = 0; rank < plan.ranks; ++rank) {
    programs.push_back(DlrmProgram(model, plan, placement, rank));
    states.push_back(StatesOfRank(model, plan, placement, rank));
  }
  StepJob job(std::move(mesh), {{.axes = 1}}, std::move(programs));
  job.SetStates(std::move(states));
  return job;
}

}  // namespace etude
