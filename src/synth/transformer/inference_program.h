#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/synth/job/step_job.h"
#include "src/synth/transformer/transformer_layer.h"
#include "src/synth/transformer/transformer_model.h"
#include "src/synth/transformer/transformer_program.h"

// Plans whose phase is not training.
namespace etude {

// Returns the distribution of layers over ranks for one of the plan's tokens, from 0; the prompt is
// one pass. A single token of a sequence is not shared by tensor-parallel ranks.
LayerPlan InferenceLayerPlan(const TransformerModel& model, const TransformerPlan& plan,
                             int64_t token);

// Returns kBadInput, with the expected values, unless the model, which must have passed
// CheckTransformer, can be used so. Ranks and stages are checked by CheckTransformerPlan.
Fits CheckInferencePlan(const TransformerModel& model, const TransformerPlan& plan);

// Returns the program of a stage, like StageProgram.
std::vector<StepWork> InferenceProgram(const TransformerModel& model, const TransformerPlan& plan,
                                       int64_t stage, int64_t expert_rank);

// Final memory of a rank of `stage`, without activations.
struct InferenceMemory {
  Bytes weights;
  Bytes cache;          // of all sequences of all micro-batches
  Bytes cached_before;  // the part from before the first of the plan's tokens

  Bytes total() const { return weights + cache; }
};
InferenceMemory InferenceMemoryOf(const TransformerModel& model, const TransformerPlan& plan,
                                  int64_t stage);

}  // namespace etude
