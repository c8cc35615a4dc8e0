#include "src/suite/nn/solids/orbit_camera.h"

#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "src/suite/nn/functional.h"

namespace etude::suite {

OrbitCamera::Pose OrbitCamera::PoseOf(int64_t view) const {
  const double azimuth =
      2 * std::numbers::pi * static_cast<double>(view) / static_cast<double>(views);
  const double height = elevation * std::numbers::pi / 180;
  const double distance = (nearest + farthest) / 2;
  const double across = std::cos(azimuth);
  const double along = std::sin(azimuth);
  const double level = std::cos(height);
  const double above = std::sin(height);
  const Vector forward = {across * level, -above, -along * level};
  return {.eye = {-distance * forward[0], -distance * forward[1], -distance * forward[2]},
          .forward = forward,
          .up = {across * above, level, -along * above},
          .right = {along, 0, across}};
}

at::Tensor OrbitCamera::Rays(int64_t side) const {
  const auto at = [side](int64_t i) {
    return side > 1 ? static_cast<double>(i) / static_cast<double>(side - 1) : 0.5;
  };
  std::vector<float> values;
  values.reserve(static_cast<size_t>(views * side * side * side * 3));
  for (int64_t view = 0; view < views; ++view) {
    const Pose pose = PoseOf(view);
    for (int64_t depth = 0; depth < side; ++depth) {
      const double distance = nearest + (farthest - nearest) * at(depth);
      for (int64_t row = 0; row < side; ++row) {
        const double up = (1 - 2 * at(row)) * distance / zoom;
        for (int64_t column = 0; column < side; ++column) {
          const double right = (2 * at(column) - 1) * distance / zoom;
          // The last dimension of a volume first.
          for (const size_t axis : {size_t{2}, size_t{0}, size_t{1}}) {
            values.push_back(static_cast<float>(pose.eye[axis] + distance * pose.forward[axis] +
                                                up * pose.up[axis] + right * pose.right[axis]));
          }
        }
      }
    }
  }
  return FromValues(values, {views, side, side, side, 3});
}

at::Tensor Projections(const at::Tensor& volumes, const at::Tensor& rays) {
  const at::Tensor seen = GridSample(volumes, rays.flatten(1, 2));  // [N, 1, V · s, s, s]
  return seen.squeeze(1).unflatten(1, {rays.size(1), rays.size(2)}).amax(2);
}

}  // namespace etude::suite
