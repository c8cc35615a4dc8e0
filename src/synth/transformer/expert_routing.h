#pragma once

#include <cstdint>
#include <vector>

#include "src/synth/transformer/transformer_model.h"

namespace etude {

// Whether tokens prefer some experts to others. docs/models/transformer.md has the model.
bool IsUneven(const ExpertsModel& experts);

// Of the `tokens` of a rank, how many go to each expert of a layer: a whole number each, at most
// all of them. They sum to top_k for each token, but for what is above the capacity and dropped.
// The same for the same seed. The model has passed CheckTransformer.
std::vector<int64_t> RowsOfExperts(const ExpertsModel& experts, int64_t layer, int64_t tokens);

}  // namespace etude
