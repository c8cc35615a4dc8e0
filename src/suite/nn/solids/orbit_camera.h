#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// Cameras on a circle around the origin, at the same height, all looking at the origin. Points are
// (x, y, z) with y up; a volume shows -1 to 1 of each and is stored as [y, x, z].
struct OrbitCamera {
  using Vector = std::array<double, 3>;

  int64_t views = 24;
  double elevation = 30;  // degrees above the horizon
  double nearest = 0;     // distances from the camera between which volumes are sampled
  double farthest = 0;
  double zoom = 1;  // distance at which a picture shows -1 to 1

  // A camera's place, and its axes of length 1.
  struct Pose {
    Vector eye{};
    Vector forward{};
    Vector up{};
    Vector right{};
  };
  // View `view` of `views`, 360° / views from the previous one.
  Pose PoseOf(int64_t view) const;

  // Returns the places in a volume, for GridSample, that the pixels of `side` × `side` show at
  // `side` distances: [views, side (distance), side (row), side (column), 3].
  at::Tensor Rays(int64_t side) const;
};

// Returns how volumes [N, 1, S, S, S] look from V views each, the largest value along each ray:
// [N, V, s, s]. `rays`: [N, V, s, s, s, 3].
at::Tensor Projections(const at::Tensor& volumes, const at::Tensor& rays);

}  // namespace etude::suite
