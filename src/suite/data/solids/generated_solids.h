#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/solids/orbit_camera.h"

namespace etude::suite {

// Pieces of furniture and vehicles of boxes, cylinders and ellipsoids, with pictures of them. Each
// is a chair, a table, a car, an airplane or a lamp of random proportions; its front is at x = 1.
struct GeneratedSolids {
  static constexpr int64_t kPictureSide = 32;
  static constexpr int64_t kVolumeSide = 16;
  at::Tensor pictures;  // [N, P, 32, 32], from 0 to 1: how light each pixel is, 0 beside the solid
  at::Tensor volumes;   // [N, 16, 16, 16]: 1 where the solid is, stored as [y, x, z]
};
// Camera of the pictures; it sees all of the space that solids may fill.
OrbitCamera SolidsCamera();

// Returns `count` solids, a function of `seed`, with `pictures_each` pictures from views that are
// evenly spread around each.
GeneratedSolids GenerateSolids(int64_t count, int64_t pictures_each, uint64_t seed);

}  // namespace etude::suite
