#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// Returns the mean triplet loss over all pairs of an anchor and another sample with its label
// (Schroff, 1503.03832). The loss of a pair is the amount by which a negative, a sample with
// another label, is less than `margin` farther from the anchor than the positive, by squared
// distance. The negative is semi-hard: the nearest of those that are farther than the positive, or
// the farthest if there is none. `embeddings`: float [N, D], each of length 1, with `labels`.
// Returns 0 if there is no such triplet. Shapes depend only on the labels.
at::Tensor TripletLoss(const at::Tensor& embeddings, std::span<const int64_t> labels,
                       double margin);

}  // namespace etude::suite
