#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Boxes on pictures, and what detectors do with them outside of networks. All of it runs on the
// CPU; random numbers are not among it.
namespace etude::suite {

// Pixels. The first pixel lies between 0 and 1.
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

// What is to be found on a picture.
struct Object {
  Box box;
  int64_t label = 0;       // from 0
  bool difficult = false;  // neither to be found nor wrong where it is
};
struct Annotation {
  PictureSize size;
  std::vector<Object> objects;
};

// What was found.
struct Detection {
  Box box;
  int64_t label = 0;
  float score = 0;
};

// The common area of two boxes by the area of both; 0 where a box has none.
float Overlap(const Box& a, const Box& b);
// The part of `box` that lies on a picture.
Box Clipped(const Box& box, const PictureSize& size);
// The same objects on the picture made to have another size, or mirrored left to right.
Annotation Resized(const Annotation& annotation, const PictureSize& size);
Annotation Mirrored(const Annotation& annotation);

// How a box lies against another, as networks learn it: the way between the middles by the other's
// width and height, and the logarithms of the ratios of widths and of heights (Girshick, 1311.2524,
// appendix C). Boxes have areas.
using BoxCode = std::array<float, 4>;
BoxCode Encode(const Box& box, const Box& against);
// The box of a code; ratios end at 1000 / 16, so that it is finite where the code is.
Box Decode(const BoxCode& code, const Box& against);

// Numbers of the boxes to keep, at most `most`, best score first: none that overlaps a better one
// by more than `most_overlap`. Boxes whose score is no number are not kept.
std::vector<size_t> SuppressNonMaxima(std::span<const Box> boxes, std::span<const float> scores,
                                      float most_overlap, size_t most);

// The boxes against which a network says where objects are: at the middle of each place of a grid
// of squares of `stride` pixels, row by row, one for each side and each ratio of height to width;
// each has a square's area of that side.
struct AnchorShape {
  std::vector<float> sides;
  std::vector<float> ratios;
  size_t count() const { return sides.size() * ratios.size(); }
};
std::vector<Box> MakeAnchors(const AnchorShape& shape, int64_t rows, int64_t columns,
                             int64_t stride);

}  // namespace etude::suite
