#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/data/captions.h"

namespace etude::suite {

// Generated 32 × 32 pictures of one to three coloured shapes on grey, side by side, with a sentence
// that describes them from left to right: "a red bar above one green dot beside one blue pole". The
// picture determines everything but the articles. These are random: one bit in the four words (or
// three and the end) of each shape, so the expected perplexity is at least 2^(1/4).
struct CaptionedShape {
  int64_t kind = 0;    // square, dot, bar, pole
  int64_t colour = 0;  // red, green, blue, yellow; different for all shapes of a scene
  int64_t row = 0;     // 0 at the top, 1 at the bottom
  float x = 0;         // centre, in pixels from the left and from the top
  float y = 0;
  float radius = 0;
  float light = 1;  // brightness of the colour
};

struct CaptionedScene {
  std::vector<CaptionedShape> shapes;  // from left to right
  float ground = 0;                    // grey level of the background
  Caption caption;
};

constexpr int64_t kCaptionedSide = 32;
// Size of the vocabulary, including special words: two articles, three words of place, four colours
// and four kinds.
constexpr int64_t kCaptionedWords = kFirstWord + 13;

// Makes scenes that depend on the seed only and are the same on every machine.
std::vector<CaptionedScene> MakeCaptionedScenes(int64_t count, uint64_t seed);
// Draws the picture: [3, kCaptionedSide, kCaptionedSide], from 0 to 1.
at::Tensor Render(const CaptionedScene& scene);

}  // namespace etude::suite
