#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// The mean triplet loss over all pairs of an anchor and another sample with its label (Schroff,
// 1503.03832): how much less than `margin` farther from the anchor, by squared distance, a sample
// with another label is. That one is semi-hard: the nearest of those that are farther than the
// positive, or the farthest if none is. `embeddings` float [N, D], each of length 1; `labels` are
// theirs. 0 if there is no such triplet. Shapes depend on the labels only.
at::Tensor TripletLoss(const at::Tensor& embeddings, std::span<const int64_t> labels,
                       double margin);

}  // namespace etude::suite
