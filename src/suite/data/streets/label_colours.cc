#include "src/suite/data/streets/label_colours.h"

#include <array>
#include <vector>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr std::array<LabelColour, 20> kCityscapesColours = {{
    {128, 64, 128},   // road
    {244, 35, 232},   // sidewalk
    {70, 70, 70},     // building
    {102, 102, 156},  // wall
    {190, 153, 153},  // fence
    {153, 153, 153},  // pole
    {250, 170, 30},   // traffic light
    {220, 220, 0},    // traffic sign
    {107, 142, 35},   // vegetation
    {152, 251, 152},  // terrain
    {70, 130, 180},   // sky
    {220, 20, 60},    // person
    {255, 0, 0},      // rider
    {0, 0, 142},      // car
    {0, 0, 70},       // truck
    {0, 60, 100},     // bus
    {0, 80, 100},     // train
    {0, 0, 230},      // motorcycle
    {119, 11, 32},    // bicycle
    {0, 0, 0},        // none of them
}};

}  // namespace

std::span<const LabelColour> CityscapesColours() { return kCityscapesColours; }

LabelPalette::LabelPalette(std::span<const LabelColour> colours) {
  std::vector<float> values;
  for (const LabelColour& colour : colours) {
    for (const uint8_t part : {colour.red, colour.green, colour.blue}) {
      values.push_back(static_cast<float>(part) / 127.5F - 1);
    }
  }
  colours_ = FromValues(values, {std::ssize(colours), 3});
}

at::Tensor LabelPalette::Paint(const at::Tensor& classes) const {
  const at::Tensor pixels = colours_.index_select(0, classes.flatten());
  return pixels.view({classes.size(0), classes.size(1), classes.size(2), 3})
      .permute({0, 3, 1, 2})
      .contiguous();
}

// The squared distance from a colour c to a pixel x is |x|² + |c|² − 2 c·x; |x|² does not matter.
at::Tensor LabelPalette::Read(const at::Tensor& pictures) const {
  // Half precision confuses near colours.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::Tensor pixels = pictures.to(at::kCPU, at::kFloat).flatten(2);
  const at::Tensor squares = colours_.square().sum(1).view({1, -1, 1});
  const at::Tensor nearness = colours_.unsqueeze(0).matmul(pixels) * 2 - squares;
  return nearness.argmax(1).view({pictures.size(0), pictures.size(2), pictures.size(3)});
}

}  // namespace etude::suite
