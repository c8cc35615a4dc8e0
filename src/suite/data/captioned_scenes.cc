#include "src/suite/data/captioned_scenes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "src/base/random_stream.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr uint64_t kArticles = 2;
constexpr uint64_t kSceneColumns = 3;
constexpr uint64_t kSceneRows = 2;

// The vocabulary.
constexpr int64_t kFirstArticle = kFirstWord;  // a, one
constexpr int64_t kWordAbove = kFirstWord + 2;
constexpr int64_t kWordBelow = kFirstWord + 3;
constexpr int64_t kWordBeside = kFirstWord + 4;
constexpr int64_t kFirstColour = kFirstWord + 5;  // red, green, blue, yellow
constexpr int64_t kFirstKind = kFirstWord + 9;    // square, dot, bar, pole

using Rgb = std::array<float, 3>;
constexpr std::array kShapeColours = {Rgb{1, 0, 0}, Rgb{0, 1, 0}, Rgb{0, 0, 1}, Rgb{1, 1, 0}};

// Half sizes of shape kinds, in units of the radius.
struct HalfSize {
  float width;
  float height;
};
constexpr std::array kHalfSizes = {HalfSize{1, 1}, HalfSize{0.35F, 0.35F}, HalfSize{1, 0.35F},
                                   HalfSize{0.35F, 1}};

// Draws `count` different numbers below `bound`, in random order.
std::vector<int64_t> DrawDistinct(RandomStream& random, size_t count, size_t bound) {
  std::vector<int64_t> numbers(bound);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (size_t i = 0; i < count; ++i) std::swap(numbers[i], numbers[i + random.Below(bound - i)]);
  numbers.resize(count);
  return numbers;
}

int64_t PlaceWord(const CaptionedShape& from, const CaptionedShape& to) {
  if (from.row == to.row) return kWordBeside;
  return from.row < to.row ? kWordAbove : kWordBelow;
}

Caption Describe(const std::vector<CaptionedShape>& shapes, RandomStream& random) {
  Caption caption;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (i > 0) caption.push_back(PlaceWord(shapes[i - 1], shapes[i]));
    caption.push_back(kFirstArticle + static_cast<int64_t>(random.Below(kArticles)));
    caption.push_back(kFirstColour + shapes[i].colour);
    caption.push_back(kFirstKind + shapes[i].kind);
  }
  return caption;
}

CaptionedScene DrawScene(RandomStream& random) {
  CaptionedScene scene;
  const size_t count = 1 + random.Below(kSceneColumns);
  std::vector<int64_t> columns = DrawDistinct(random, count, kSceneColumns);
  std::ranges::sort(columns);
  const std::vector<int64_t> colours = DrawDistinct(random, count, kShapeColours.size());
  for (size_t i = 0; i < count; ++i) {
    CaptionedShape& shape = scene.shapes.emplace_back();
    shape.kind = static_cast<int64_t>(random.Below(kHalfSizes.size()));
    shape.colour = colours[i];
    shape.row = static_cast<int64_t>(random.Below(kSceneRows));
    constexpr float kColumnWidth = static_cast<float>(kCaptionedSide) / kSceneColumns;
    constexpr float kRowHeight = static_cast<float>(kCaptionedSide) / kSceneRows;
    shape.x = (static_cast<float>(columns[i]) + 0.5F) * kColumnWidth + random.Within(-0.5F, 0.5F);
    shape.y = (static_cast<float>(shape.row) + 0.5F) * kRowHeight + random.Within(-2.0F, 2.0F);
    shape.radius = random.Within(3.8F, 4.8F);
    shape.light = random.Within(0.75F, 1);
  }
  scene.ground = random.Within(0, 0.3F);
  scene.caption = Describe(scene.shapes, random);
  return scene;
}

}  // namespace

std::vector<CaptionedScene> MakeCaptionedScenes(int64_t count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<CaptionedScene> scenes(static_cast<size_t>(count));
  for (CaptionedScene& scene : scenes) scene = DrawScene(random);
  return scenes;
}

at::Tensor Render(const CaptionedScene& scene) {
  constexpr size_t kSide = kCaptionedSide;
  constexpr size_t kPlane = kSide * kSide;
  std::vector<float> pixels(3 * kPlane, scene.ground);
  for (const CaptionedShape& shape : scene.shapes) {
    const Rgb& colour = kShapeColours[static_cast<size_t>(shape.colour)];
    const HalfSize& half = kHalfSizes[static_cast<size_t>(shape.kind)];
    for (size_t place = 0; place < kPlane; ++place) {
      const float x = static_cast<float>(place % kSide) + 0.5F - shape.x;
      const float y = static_cast<float>(place / kSide) + 0.5F - shape.y;
      if (std::abs(x) > half.width * shape.radius || std::abs(y) > half.height * shape.radius) {
        continue;
      }
      for (size_t c = 0; c < 3; ++c) pixels[c * kPlane + place] = colour[c] * shape.light;
    }
  }
  return FromValues(std::span<const float>(pixels), {3, kCaptionedSide, kCaptionedSide});
}

}  // namespace etude::suite
