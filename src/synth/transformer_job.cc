#include "src/synth/transformer_job.h"

#include <utility>
#include <vector>

namespace etude {
namespace {

enum JobAxis : size_t { kTensorAxis, kContextAxis, kExpertAxis, kDataAxis, kStageAxis };

constexpr AxisSet Along(JobAxis axis) { return AxisSet{1} << axis; }

// By ParallelGroup.
std::vector<StepGroup> ParallelGroups() {
  return {
      {.axes = Along(kTensorAxis)},
      {.axes = Along(kContextAxis)},
      {.axes = Along(kExpertAxis)},
      {.axes = Along(kContextAxis) | Along(kExpertAxis) | Along(kDataAxis)},
      {.axes = Along(kContextAxis) | Along(kDataAxis)},
      {.axes = Along(kStageAxis), .ends = true},
  };
}

}  // namespace

Result<StepJob> MakeTransformerJob(const TransformerModel& model, const TransformerPlan& plan) {
  ETUDE_RETURN_IF_ERROR(CheckTransformerPlan(model, plan));
  ETUDE_ASSIGN_OR_RETURN(Mesh mesh,
                         Mesh::Make({{.name = "tp", .size = plan.layer.tensor},
                                     {.name = "cp", .size = plan.layer.context},
                                     {.name = "ep", .size = plan.layer.expert},
                                     {.name = "dp", .size = plan.data / plan.layer.expert},
                                     {.name = "pp", .size = plan.pipeline.stages}}));
  std::vector<std::vector<StepWork>> programs;
  std::vector<StepStates> states;
  for (int64_t stage = 0; stage < plan.pipeline.stages; ++stage) {
    programs.push_back(StageProgram(model, plan, stage));
    if (plan.phase == ModelPhase::kTraining) states.push_back(StatesOfStage(model, plan, stage));
  }
  StepJob job(std::move(mesh), ParallelGroups(), std::move(programs));
  job.SetStates(std::move(states));
  return job;
}

}  // namespace etude
