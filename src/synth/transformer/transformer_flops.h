#pragma once

#include <cstdint>

#include "src/synth/transformer/transformer_model.h"
#include "src/synth/transformer/transformer_program.h"

// Operations that a model needs, without a plan's additional ones. docs/models/utilization.md has
// the formulas and their sources.
namespace etude {

// Returns the number of parameters in a token's matrix products: active ones, without the embedding
// and learned positions; a tied head counts.
int64_t MatrixParameterCount(const TransformerModel& model);

// Returns the tokens of a step over all replicas; for decode the generated ones. INT64_MAX on
// overflow.
int64_t StepTokens(const TransformerModel& model, const TransformerPlan& plan);

// Returns the operations of a step over all ranks: 6 per parameter and token in training, 2 in
// inference, and those of attention without a mask; without recomputation. The plan must have
// passed CheckTransformerPlan.
double ModelFlops(const TransformerModel& model, const TransformerPlan& plan);

}  // namespace etude
