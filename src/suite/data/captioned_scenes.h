#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/data/captions.h"

namespace etude::suite {

// Generated pictures of 32 × 32 pixels with one to three coloured shapes on grey, side by side, and
// a sentence about them from left to right: "a red bar above one green dot beside one blue pole".
// All but the articles follows from the picture; they are drawn fairly, one bit in the four words
// (or three and the end) that each shape takes, so that no perplexity below 2^(1/4) can be
// expected.
struct CaptionedShape {
  int64_t kind = 0;    // square, dot, bar, pole
  int64_t colour = 0;  // red, green, blue, yellow; no two shapes of a scene have the same
  int64_t row = 0;     // 0 at the top, 1 at the bottom
  float x = 0;         // the middle, in pixels from the left and from the top
  float y = 0;
  float radius = 0;
  float light = 1;  // of the colour
};

struct CaptionedScene {
  std::vector<CaptionedShape> shapes;  // from left to right
  float ground = 0;                    // grey of what is between the shapes
  Caption caption;
};

constexpr int64_t kCaptionedSide = 32;
// Words of all captions, the special ones counted in: two articles, three words of place, four
// colours and four kinds.
constexpr int64_t kCaptionedWords = kFirstWord + 13;

// Scenes of their own for each seed, the same on every machine.
std::vector<CaptionedScene> MakeCaptionedScenes(int64_t count, uint64_t seed);
// [3, kCaptionedSide, kCaptionedSide], from 0 to 1.
at::Tensor Render(const CaptionedScene& scene);

}  // namespace etude::suite
