#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// The colours in which label maps show classes, from 0 to 255.
struct LabelColour {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
};

// Cityscapes' nineteen classes, from road to bicycle, in its order, and black for pixels of none.
std::span<const LabelColour> CityscapesColours();

// Translates between classes, int64 [N, H, W], and pictures that show them, [N, 3, H, W], from -1
// to
// 1. On the CPU. Immutable.
class LabelPalette {
 public:
  explicit LabelPalette(std::span<const LabelColour> colours);

  int64_t classes() const { return colours_.size(0); }
  at::Tensor Paint(const at::Tensor& classes) const;
  // Returns the class of the nearest colour for each pixel.
  at::Tensor Read(const at::Tensor& pictures) const;

 private:
  at::Tensor colours_;  // [classes, 3], from -1 to 1
};

}  // namespace etude::suite
