#include "src/suite/nn/triplets.h"

#include <algorithm>
#include <vector>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr double kFarthest = 4;  // squared distance of two points of the unit sphere

}  // namespace

at::Tensor TripletLoss(const at::Tensor& embeddings, std::span<const int64_t> labels,
                       double margin) {
  const int64_t count = std::ssize(labels);
  std::vector<int64_t> anchors;
  std::vector<int64_t> pairs;  // indices in the table of distances
  for (int64_t anchor = 0; anchor < count; ++anchor) {
    for (int64_t other = 0; other < count; ++other) {
      if (anchor == other) continue;
      if (labels[static_cast<size_t>(anchor)] != labels[static_cast<size_t>(other)]) continue;
      anchors.push_back(anchor);
      pairs.push_back(anchor * count + other);
    }
  }
  const bool one_label = std::ranges::all_of(labels, [&](int64_t one) { return one == labels[0]; });
  if (pairs.empty() || one_label) return embeddings.sum() * 0;

  const at::Device device = embeddings.device();
  const at::Tensor anchor = FromValues(anchors, {std::ssize(anchors)}).to(device);
  const at::Tensor pair = FromValues(pairs, {std::ssize(pairs)}).to(device);
  const at::Tensor label = FromValues(labels, {count});
  const at::Tensor is_other =
      label.unsqueeze(1).ne(label.unsqueeze(0)).to(device).index_select(0, anchor);

  const at::Tensor distances = 2 - 2 * embeddings.matmul(embeddings.t());
  const at::Tensor positive = distances.flatten().index_select(0, pair);
  const at::Tensor negatives = distances.index_select(0, anchor);
  const at::Tensor is_farther = negatives.gt(positive.unsqueeze(1)).logical_and(is_other);
  const at::Tensor nearest = negatives.masked_fill(is_farther.logical_not(), kFarthest).amin({1});
  const at::Tensor farthest = negatives.masked_fill(is_other.logical_not(), -1).amax({1});
  const at::Tensor negative = Where(is_farther.any(1), nearest, farthest);
  return (positive - negative + margin).relu().mean();
}

}  // namespace etude::suite
