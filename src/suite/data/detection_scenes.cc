#include "src/suite/data/detection_scenes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "src/base/random_stream.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr uint64_t kMostShapes = 3;
constexpr int kTriesToPlace = 20;
constexpr float kMostShapesOverlap = 0.05F;
constexpr float kLeastShapeSide = 14;
constexpr float kMostShapeSide = 30;
constexpr float kLeastContrast = 0.7F;  // sum over colour channels
constexpr float kStripes = 0.12F;
constexpr float kNoise = 0.06F;

using Colour = std::array<float, 3>;

// A colour with brightness waves.
struct Texture {
  Colour colour{};
  float x = 0;  // wave vector
  float y = 0;
  float phase = 0;

  float At(size_t channel, float px, float py) const {
    return colour[channel] + kStripes * std::sin(x * px + y * py + phase);
  }
};

Texture DrawTexture(RandomStream& random) {
  Texture texture;
  for (float& part : texture.colour) part = random.Within(0.1F, 0.9F);
  const float angle = random.Within(0, 2 * std::numbers::pi_v<float>);
  const float length = 2 * std::numbers::pi_v<float> / random.Within(5.0F, 20.0F);
  texture.x = length * std::cos(angle);
  texture.y = length * std::sin(angle);
  texture.phase = random.Within(0, 2 * std::numbers::pi_v<float>);
  return texture;
}

float ContrastOf(const Colour& a, const Colour& b) {
  float sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum;
}

// Returns whether a point, from (0, 0) at a box's first corner to (1, 1) at its last, is in the
// shape.
bool Covers(int64_t label, float x, float y) {
  if (label == 0) return (x - 0.5F) * (x - 0.5F) + (y - 0.5F) * (y - 0.5F) <= 0.25F;
  if (label == 1) return true;
  return 2 * std::abs(x - 0.5F) <= y;
}

Box DrawBox(RandomStream& random) {
  const float side = random.Within(kLeastShapeSide, kMostShapeSide);
  const float stretch = random.Within(0.85F, 1.18F);
  const float width = std::round(side * stretch);
  const float height = std::round(side / stretch);
  const float left = std::floor(random.Within(0, DetectionScenes::kSide - width + 1));
  const float top = std::floor(random.Within(0, DetectionScenes::kSide - height + 1));
  return {left, top, left + width, top + height};
}

class Canvas {
 public:
  explicit Canvas(float* pixels) : pixels_(pixels) {}

  void Fill(const Texture& texture, const Box& box, int64_t label) {
    for (auto y = static_cast<int64_t>(box.top); y < static_cast<int64_t>(box.bottom); ++y) {
      for (auto x = static_cast<int64_t>(box.left); x < static_cast<int64_t>(box.right); ++x) {
        const float px = static_cast<float>(x) + 0.5F;
        const float py = static_cast<float>(y) + 0.5F;
        if (!Covers(label, (px - box.left) / box.width(), (py - box.top) / box.height())) continue;
        for (size_t channel = 0; channel < 3; ++channel) {
          pixels_[(static_cast<int64_t>(channel) * kSide + y) * kSide + x] =
              texture.At(channel, px, py);
        }
      }
    }
  }
  void AddNoise(RandomStream& random) {
    for (int64_t i = 0; i < 3 * kSide * kSide; ++i) {
      pixels_[i] += random.Within(-kNoise, kNoise);
    }
  }

 private:
  static constexpr int64_t kSide = DetectionScenes::kSide;
  float* pixels_;
};

Annotation DrawScene(RandomStream& random, float* pixels) {
  constexpr auto kEdge = static_cast<float>(DetectionScenes::kSide);
  constexpr int64_t kRectangle = 1;
  Annotation scene{.size = {kEdge, kEdge}};
  Canvas canvas(pixels);
  const Texture ground = DrawTexture(random);
  canvas.Fill(ground, {0, 0, kEdge, kEdge}, kRectangle);
  const uint64_t shapes = 1 + random.Below(kMostShapes);
  for (uint64_t shape = 0; shape < shapes; ++shape) {
    const auto label = static_cast<int64_t>(random.Below(DetectionScenes::kClasses));
    Texture texture = DrawTexture(random);
    while (ContrastOf(texture.colour, ground.colour) < kLeastContrast) {
      texture = DrawTexture(random);
    }
    for (int attempt = 0; attempt < kTriesToPlace; ++attempt) {
      const Box box = DrawBox(random);
      const bool is_free = std::ranges::all_of(scene.objects, [&](const Object& other) {
        return Overlap(other.box, box) <= kMostShapesOverlap;
      });
      if (!is_free) continue;
      canvas.Fill(texture, box, label);
      scene.objects.push_back({box, label});
      break;
    }
  }
  canvas.AddNoise(random);
  return scene;
}

}  // namespace

DetectionScenes DrawDetectionScenes(int64_t count, uint64_t seed) {
  DetectionScenes scenes;
  scenes.pictures = Zeros({count, 3, DetectionScenes::kSide, DetectionScenes::kSide});
  auto* pixels = scenes.pictures.mutable_data_ptr<float>();
  RandomStream random(seed);
  for (int64_t scene = 0; scene < count; ++scene) {
    scenes.annotations.push_back(DrawScene(random, pixels + scene * scenes.pictures[0].numel()));
  }
  return scenes;
}

}  // namespace etude::suite
