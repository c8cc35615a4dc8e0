#include "src/suite/data/streets/street_scenes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "src/base/random_stream.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

enum StreetClass : uint8_t { kSky, kHouse, kTree, kRoad, kCar };

constexpr std::array<LabelColour, 5> kStreetColours = {{
    {70, 130, 180},  // sky
    {70, 70, 70},    // building
    {107, 142, 35},  // vegetation
    {128, 64, 128},  // road
    {0, 0, 142},     // car
}};

constexpr int64_t kStreetSide = StreetScenes::kSide;
constexpr float kStreetNoise = 0.07F;  // uniform, of colours from 0 to 1

using Rgb = std::array<float, 3>;

constexpr std::array<Rgb, 3> kCarColours = {
    {{0.75F, 0.15F, 0.15F}, {0.15F, 0.2F, 0.65F}, {0.85F, 0.8F, 0.75F}}};

class StreetPainter {
 public:
  StreetPainter(RandomStream& random, int64_t* classes, float* colours)
      : random_(&random), classes_(classes), colours_(colours) {}

  void Paint() {
    const int64_t horizon = Whole(13, 19);
    PaintSky(horizon);
    PaintRoad(horizon);
    int64_t left = Whole(-4, 4);
    for (int house = 0; house < 3; ++house) {
      left = PaintHouse(left, horizon);
      left += Whole(0, 5);
    }
    for (int64_t trees = Whole(1, 3); trees > 0; --trees) PaintTree(horizon);
    for (int64_t cars = Whole(1, 3); cars > 0; --cars) PaintCar(horizon);
    const float light = Between(0.7F, 1.1F);
    for (int64_t i = 0; i < 3 * kStreetSide * kStreetSide; ++i) {
      const float colour = colours_[i] * light + Between(-kStreetNoise, kStreetNoise);
      colours_[i] = std::clamp(colour, 0.0F, 1.0F) * 2 - 1;
    }
  }

 private:
  float Between(float low, float high) { return random_->Within(low, high); }
  // Draws a whole number from `low` to below `high`.
  int64_t Whole(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_->Below(static_cast<uint64_t>(high - low)));
  }

  // Nothing outside of the picture.
  void Set(int64_t x, int64_t y, StreetClass kind, const Rgb& colour, float light = 1) {
    if (x < 0 || y < 0 || x >= kStreetSide || y >= kStreetSide) return;
    classes_[y * kStreetSide + x] = kind;
    for (int64_t part = 0; part < 3; ++part) {
      colours_[(part * kStreetSide + y) * kStreetSide + x] =
          colour[static_cast<size_t>(part)] * light;
    }
  }

  // Paler towards the horizon.
  void PaintSky(int64_t horizon) {
    const Rgb top = {Between(0.45F, 0.6F), Between(0.65F, 0.8F), Between(0.85F, 1)};
    const float fade = Between(0, 0.35F);
    for (int64_t y = 0; y < horizon; ++y) {
      const float share = fade * static_cast<float>(y) / static_cast<float>(horizon);
      Rgb colour = top;
      for (float& part : colour) part += share * (1 - part);
      for (int64_t x = 0; x < kStreetSide; ++x) Set(x, y, kSky, colour);
    }
  }

  void PaintRoad(int64_t horizon) {
    const float grey = Between(0.35F, 0.5F);
    const int64_t mark = Whole(10, 22);
    for (int64_t y = horizon; y < kStreetSide; ++y) {
      for (int64_t x = 0; x < kStreetSide; ++x) Set(x, y, kRoad, {grey, grey, grey * 1.05F});
      if (y / 2 % 2 != 0) continue;
      for (int64_t x = mark; x < mark + 2; ++x) Set(x, y, kRoad, {0.85F, 0.85F, 0.85F});
    }
  }

  // Returns where the house ends.
  int64_t PaintHouse(int64_t left, int64_t horizon) {
    const int64_t right = left + Whole(6, 12);
    const int64_t top = horizon - Whole(5, 12);
    const float red = Between(0.35F, 0.75F);
    const Rgb wall = {red, red * Between(0.75F, 0.95F), red * Between(0.6F, 0.9F)};
    for (int64_t y = top; y < horizon; ++y) {
      for (int64_t x = left; x < right; ++x) {
        const bool is_window = (x - left) % 3 == 1 && (y - top) % 3 == 1;
        Set(x, y, kHouse, wall, is_window ? 0.55F : 1);
      }
    }
    return right;
  }

  void PaintTree(int64_t horizon) {
    const float middle_x = Between(2, 30);
    const float middle_y = static_cast<float>(horizon) - Between(2, 5);
    const float radius = Between(2.5F, 4.5F);
    const float green = Between(0.35F, 0.6F);
    for (int64_t y = 0; y <= horizon; ++y) {
      for (int64_t x = 0; x < kStreetSide; ++x) {
        const float right = static_cast<float>(x) - middle_x;
        const float down = static_cast<float>(y) - middle_y;
        const bool is_crown = right * right + down * down < radius * radius;
        const bool is_trunk = std::abs(right) < 1 && down > 0;
        if (!is_crown && !is_trunk) continue;
        Set(x, y, kTree, {green * 0.55F, green, green * 0.35F}, Between(0.8F, 1.2F));
      }
    }
  }

  void PaintCar(int64_t horizon) {
    const int64_t width = Whole(6, 10);
    const int64_t height = Whole(3, 6);
    const int64_t left = Whole(0, kStreetSide - width);
    const int64_t top = Whole(horizon + 1, kStreetSide - height);
    const Rgb& colour = kCarColours[random_->Below(kCarColours.size())];
    for (int64_t y = top; y < top + height; ++y) {
      for (int64_t x = left; x < left + width; ++x) {
        const bool is_screen = y == top && x > left && x < left + width - 1;
        Set(x, y, kCar, is_screen ? Rgb{0.15F, 0.15F, 0.15F} : colour);
      }
    }
  }

  RandomStream* random_;
  int64_t* classes_;
  float* colours_;
};

}  // namespace

std::span<const LabelColour> StreetScenes::Colours() { return kStreetColours; }

StreetScenes DrawStreetScenes(int64_t count, uint64_t seed) {
  StreetScenes scenes{Zeros({count, kStreetSide, kStreetSide}, at::kLong),
                      Zeros({count, 3, kStreetSide, kStreetSide})};
  auto* classes = scenes.classes.mutable_data_ptr<int64_t>();
  auto* colours = scenes.pictures.mutable_data_ptr<float>();
  RandomStream random(seed);
  constexpr int64_t kPixels = kStreetSide * kStreetSide;
  for (int64_t i = 0; i < count; ++i) {
    StreetPainter(random, classes + i * kPixels, colours + i * 3 * kPixels).Paint();
  }
  return scenes;
}

}  // namespace etude::suite
