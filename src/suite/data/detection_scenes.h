#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/boxes.h"

namespace etude::suite {

// Pictures of 64 × 64 pixels with one to three ellipses, rectangles and triangles, each filled with
// a colour and stripes of its own, before a striped background, all noisy: only the outline says
// what it is. A function of the seed.
struct DetectionScenes {
  static constexpr int64_t kSide = 64;
  static constexpr int64_t kClasses = 3;
  at::Tensor pictures;  // [count, 3, 64, 64], about 0 to 1
  std::vector<Annotation> annotations;
};
DetectionScenes DrawDetectionScenes(int64_t count, uint64_t seed);

}  // namespace etude::suite
