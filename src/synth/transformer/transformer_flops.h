#pragma once

#include <cstdint>

#include "src/synth/transformer/transformer_model.h"
#include "src/synth/transformer/transformer_program.h"

// Operations that a model needs, whatever a plan computes beyond them. docs/models/utilization.md
// has the formulas and where they are from.
namespace etude {

// Parameters that take part in a token's matrix products: those that are active, without the
// embedding and learned positions; a tied head counts.
int64_t MatrixParameterCount(const TransformerModel& model);

// Tokens of a step over all replicas; of decode those that are made. INT64_MAX where they are more.
int64_t StepTokens(const TransformerModel& model, const TransformerPlan& plan);

// Operations of a step over all ranks: 6 a parameter and token in training, 2 in inference, and
// those of attention without a mask; nothing that is computed again. The plan has passed
// CheckTransformerPlan.
double ModelFlops(const TransformerModel& model, const TransformerPlan& plan);

}  // namespace etude
