#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/detection/boxes.h"

namespace etude::suite {

// Noisy 64 × 64 pictures of one to three ellipses, rectangles and triangles on a striped
// background. Each shape has its own colour and stripes, so only its outline determines its class.
// A function of the seed.
struct DetectionScenes {
  static constexpr int64_t kSide = 64;
  static constexpr int64_t kClasses = 3;
  at::Tensor pictures;  // [count, 3, 64, 64], about 0 to 1
  std::vector<Annotation> annotations;
};
DetectionScenes DrawDetectionScenes(int64_t count, uint64_t seed);

}  // namespace etude::suite
