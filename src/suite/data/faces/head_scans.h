#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// Pictures of twenty heads with 32 × 32 pixels, each with the nearness of every pixel, like those
// of a camera for colour and depth. A head is an ellipsoid with a nose, a brow, cheeks, a chin and
// eyes. Only these shapes identify the person. Pose, light, tone and noise are drawn for each
// picture.
struct HeadScans {
  static constexpr int64_t kSide = 32;
  static constexpr int64_t kPeople = 20;
  at::Tensor pictures;  // [N, 4, 32, 32], about 0 to 1: red, green, blue, nearness (0: nothing)
  at::Tensor people;    // int64 [N]
};
// Renders `of_each` pictures of each head, those of a head one after the other. The heads are the
// same for all seeds, and the pictures are a function of the seed.
HeadScans RenderHeadScans(int64_t of_each, uint64_t seed);

}  // namespace etude::suite
