#pragma once

#include <cstdint>
#include <vector>

#include "src/synth/transformer/transformer_model.h"

namespace etude {

// Returns true if tokens prefer some experts to others. docs/models/transformer.md has the model.
bool IsUneven(const ExpertsModel& experts);

// Returns the number of a rank's `tokens` that go to each expert of a layer, each at most `tokens`.
// They sum to top_k per token, except tokens dropped above the capacity. Deterministic for a seed.
// The model must have passed CheckTransformer.
std::vector<int64_t> RowsOfExperts(const ExpertsModel& experts, int64_t layer, int64_t tokens);

}  // namespace etude
