#pragma once

#include "src/base/result.h"
#include "src/synth/job/step_job.h"
#include "src/synth/transformer/transformer_program.h"

namespace etude {

// Makes a training step of a transformer, or inference, on many ranks. All ranks of a stage have
// one program or, if DiffersByExperts, those of a stage with the same experts; its groups are
// ParallelGroups. kBadInput as in CheckTransformerPlan.
//
// Rank = tensor + T · (context + C · (expert + E · (data + D · stage))), as in Megatron-LM; D is
// the number of replicas of an expert.
Result<StepJob> MakeTransformerJob(const TransformerModel& model, const TransformerPlan& plan);

}  // namespace etude
