#include "src/suite/nn/detection/roi_align.h"

#include <algorithm>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kPointsAcross = 2;  // per part, in each direction

// Returns the position of sample `point` of `points` along a box: -1 at the first, 1 at the last
// edge of the features.
float PlaceOf(int64_t point, int64_t points, float begin, float end, float extent) {
  const float share = (static_cast<float>(point) + 0.5F) / static_cast<float>(points);
  return 2 * (begin + share * (end - begin)) / extent - 1;
}

}  // namespace

at::Tensor RoiAlign(const at::Tensor& features, std::span<const std::vector<Box>> boxes,
                    int64_t stride, int64_t side) {
  const auto pictures = std::ssize(boxes);
  const int64_t channels = features.size(1);
  const auto height = static_cast<float>(features.size(2) * stride);
  const auto width = static_cast<float>(features.size(3) * stride);
  int64_t most = 0;
  for (const std::vector<Box>& own : boxes) most = std::max(most, std::ssize(own));
  if (most == 0) return features.new_zeros({0, channels, side, side});

  // One grid for all pictures; surplus rows of pictures with fewer boxes are dropped.
  const int64_t points = side * kPointsAcross;
  std::vector<float> grid(static_cast<size_t>(pictures * most * points * points * 2), 0);
  std::vector<int64_t> rows;
  for (int64_t picture = 0; picture < pictures; ++picture) {
    const std::vector<Box>& own = boxes[static_cast<size_t>(picture)];
    for (int64_t number = 0; number < std::ssize(own); ++number) {
      const Box& box = own[static_cast<size_t>(number)];
      rows.push_back(picture * most + number);
      float* place = grid.data() + rows.back() * points * points * 2;
      for (int64_t y = 0; y < points; ++y) {
        for (int64_t x = 0; x < points; ++x) {
          *place++ = PlaceOf(x, points, box.left, box.right, width);
          *place++ = PlaceOf(y, points, box.top, box.bottom, height);
        }
      }
    }
  }
  const at::Tensor places =
      FromValues(std::span<const float>(grid), {pictures, most * points, points, 2})
          .to(features.device());
  const at::Tensor read = GridSample(features.to(at::kFloat), places, /*border=*/true);
  const at::Tensor parts =
      AveragePool2d(read, {.kernel = {kPointsAcross}, .stride = {kPointsAcross}});
  const at::Tensor all = parts.view({pictures, channels, most, side, side})
                             .permute({0, 2, 1, 3, 4})
                             .reshape({pictures * most, channels, side, side});
  if (std::ssize(rows) == all.size(0)) return all;
  return all.index_select(
      0, FromValues(std::span<const int64_t>(rows), {std::ssize(rows)}).to(features.device()));
}

}  // namespace etude::suite
