#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Boxes on pictures, and the detectors' operations on them outside of networks. On the CPU, without
// random numbers.
namespace etude::suite {

// In pixels. The first pixel extends from 0 to 1.
struct Box {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;

  float width() const { return right - left; }
  float height() const { return bottom - top; }
  bool operator==(const Box&) const = default;
};

struct PictureSize {
  float width = 0;
  float height = 0;
};

// An annotated object.
struct Object {
  Box box;
  int64_t label = 0;       // from 0
  bool difficult = false;  // neither a hit nor an error if detected
};
struct Annotation {
  PictureSize size;
  std::vector<Object> objects;
};

// A detected object.
struct Detection {
  Box box;
  int64_t label = 0;
  float score = 0;
};

// Returns the intersection over union of two boxes; 0 if a box is empty.
float Overlap(const Box& a, const Box& b);
// Returns the part of `box` inside the picture.
Box Clipped(const Box& box, const PictureSize& size);
// Return the annotation for a resized or horizontally mirrored picture.
Annotation Resized(const Annotation& annotation, const PictureSize& size);
Annotation Mirrored(const Annotation& annotation);

// Encoding of a box relative to another, as learned by networks: offset of the centres divided by
// the other's width and height, and logarithms of the ratios of widths and heights (Girshick,
// 1311.2524, appendix C). Requires non-empty boxes.
using BoxCode = std::array<float, 4>;
BoxCode Encode(const Box& box, const Box& against);
// Returns the box of a code. Ratios are limited to 1000 / 16, so the box is finite if the code is.
Box Decode(const BoxCode& code, const Box& against);

// Returns the numbers of at most `most` boxes, best score first, such that none overlaps a better
// one by more than `most_overlap`. Boxes with NaN scores are dropped.
std::vector<size_t> SuppressNonMaxima(std::span<const Box> boxes, std::span<const float> scores,
                                      float most_overlap, size_t most);

// Anchor boxes, centred in the cells of a grid with `stride` pixels, row by row: one for each side
// and ratio (height / width), with the area of a square of that side.
struct AnchorShape {
  std::vector<float> sides;
  std::vector<float> ratios;
  size_t count() const { return sides.size() * ratios.size(); }
};
std::vector<Box> MakeAnchors(const AnchorShape& shape, int64_t rows, int64_t columns,
                             int64_t stride);

}  // namespace etude::suite
