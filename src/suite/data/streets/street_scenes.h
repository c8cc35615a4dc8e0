#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "src/suite/data/streets/label_colours.h"

namespace etude::suite {

// Noisy 32 × 32 pictures of streets: sky, houses with windows, trees, a road with marks, cars; and
// the class of each pixel. A function of the seed.
struct StreetScenes {
  static constexpr int64_t kSide = 32;
  // Cityscapes' colours of the classes, by number.
  static std::span<const LabelColour> Colours();

  at::Tensor classes;   // int64 [count, 32, 32]
  at::Tensor pictures;  // [count, 3, 32, 32], from -1 to 1
};
StreetScenes DrawStreetScenes(int64_t count, uint64_t seed);

}  // namespace etude::suite
