#include "src/synth/transformer/transformer_job.h"

#include <utility>
#include <vector>

namespace etude {
namespace {

constexpr AxisSet Along(ParallelAxis axis) { return AxisSet{1} << static_cast<size_t>(axis); }

// By ParallelGroup.
std::vector<StepGroup> ParallelGroups(const TransformerPlan& plan) {
  AxisSet norm =
      Along(ParallelAxis::kTensor) | Along(ParallelAxis::kExpert) | Along(ParallelAxis::kStage);
  if (plan.zero_stage > 0) norm |= Along(ParallelAxis::kContext) | Along(ParallelAxis::kData);
  return {
      {.axes = Along(ParallelAxis::kTensor)},
      {.axes = Along(ParallelAxis::kContext)},
      {.axes = Along(ParallelAxis::kExpert)},
      {.axes = Along(ParallelAxis::kContext) | Along(ParallelAxis::kExpert) |
               Along(ParallelAxis::kData)},
      {.axes = Along(ParallelAxis::kContext) | Along(ParallelAxis::kData)},
      {.axes = Along(ParallelAxis::kStage), .first_and_last_only = true},
      {.axes = norm},
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
  const bool differs = DiffersByExperts(model, plan);
  std::vector<std::vector<StepWork>> programs;
  std::vector<StepStates> states;
  for (int64_t stage = 0; stage < plan.pipeline.stages; ++stage) {
    for (int64_t expert = 0; expert < (differs ? plan.layer.expert : 1); ++expert) {
      programs.push_back(StageProgram(model, plan, stage, expert));
      states.push_back(StatesOfStage(model, plan, stage));
    }
  }
  const AxisSet stages = Along(ParallelAxis::kStage);
  StepJob job(std::move(mesh), ParallelGroups(plan), std::move(programs),
              differs ? Along(ParallelAxis::kExpert) | stages : stages);
  job.SetStates(std::move(states));
  return job;
}

}  // namespace etude
