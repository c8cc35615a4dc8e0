#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// Distance between two sets of pictures: how far the sorted projections of both on a direction are
// apart, as a mean over random directions and over resolutions (the pictures, halved by means of
// 2 × 2 pixels, and so on down to a side of 4). In units of a pixel's value. On the CPU. Immutable.
class SlicedWasserstein {
 public:
  struct Shape {
    int64_t channels = 1;
    int64_t side = 16;         // a power of 2, 4 or more
    int64_t directions = 128;  // at each resolution, of length 1
    uint64_t seed = 0;         // of the directions
  };
  explicit SlicedWasserstein(const Shape& shape);

  // Sorted projections of a set, by resolution: [N, directions].
  using Projections = std::vector<at::Tensor>;
  // pictures: [N, channels, side, side], on any device.
  Projections Project(const at::Tensor& pictures) const;
  // Both sets must have the same number of pictures.
  static double Distance(const Projections& left, const Projections& right);

 private:
  std::vector<at::Tensor> directions_;  // by resolution: [values of a picture, directions]
};

}  // namespace etude::suite
