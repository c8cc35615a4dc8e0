#include "src/suite/nn/detection/boxes.h"

#include <algorithm>
#include <cmath>

namespace etude::suite {
namespace {

constexpr float kLargestLogRatio = 4.135166556742356F;  // log(1000 / 16)

}  // namespace

float Overlap(const Box& a, const Box& b) {
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (!(width > 0 && height > 0)) return 0;
  const float common = width * height;
  return common / (a.width() * a.height() + b.width() * b.height() - common);
}

Box Clipped(const Box& box, const PictureSize& size) {
  return {std::clamp(box.left, 0.0F, size.width), std::clamp(box.top, 0.0F, size.height),
          std::clamp(box.right, 0.0F, size.width), std::clamp(box.bottom, 0.0F, size.height)};
}

Annotation Resized(const Annotation& annotation, const PictureSize& size) {
  const float x = size.width / annotation.size.width;
  const float y = size.height / annotation.size.height;
  Annotation resized{size, annotation.objects};
  for (Object& object : resized.objects) {
    const Box& box = object.box;
    object.box = {box.left * x, box.top * y, box.right * x, box.bottom * y};
  }
  return resized;
}

Annotation Mirrored(const Annotation& annotation) {
  Annotation mirrored = annotation;
  for (Object& object : mirrored.objects) {
    const Box before = object.box;
    object.box.left = annotation.size.width - before.right;
    object.box.right = annotation.size.width - before.left;
  }
  return mirrored;
}

BoxCode Encode(const Box& box, const Box& against) {
  return {(box.left + box.right - against.left - against.right) / 2 / against.width(),
          (box.top + box.bottom - against.top - against.bottom) / 2 / against.height(),
          std::log(box.width() / against.width()), std::log(box.height() / against.height())};
}

Box Decode(const BoxCode& code, const Box& against) {
  const float x = (against.left + against.right) / 2 + code[0] * against.width();
  const float y = (against.top + against.bottom) / 2 + code[1] * against.height();
  const float width = std::exp(std::min(code[2], kLargestLogRatio)) * against.width();
  const float height = std::exp(std::min(code[3], kLargestLogRatio)) * against.height();
  return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

std::vector<size_t> SuppressNonMaxima(std::span<const Box> boxes, std::span<const float> scores,
                                      float most_overlap, size_t most) {
  std::vector<size_t> order;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (std::isfinite(scores[i])) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t i) { return scores[i]; });
  std::vector<size_t> kept;
  for (const size_t i : order) {
    if (kept.size() == most) break;
    const bool is_new = std::ranges::none_of(
        kept, [&](size_t better) { return Overlap(boxes[i], boxes[better]) > most_overlap; });
    if (is_new) kept.push_back(i);
  }
  return kept;
}

std::vector<Box> MakeAnchors(const AnchorShape& shape, int64_t rows, int64_t columns,
                             int64_t stride) {
  std::vector<Box> around;  // relative to (0, 0)
  for (const float side : shape.sides) {
    for (const float ratio : shape.ratios) {
      const float x = side / std::sqrt(ratio) / 2;
      const float y = side * std::sqrt(ratio) / 2;
      around.push_back({-x, -y, x, y});
    }
  }
  std::vector<Box> anchors;
  anchors.reserve(static_cast<size_t>(rows * columns) * around.size());
  for (int64_t row = 0; row < rows; ++row) {
    const float y = (static_cast<float>(row) + 0.5F) * static_cast<float>(stride);
    for (int64_t column = 0; column < columns; ++column) {
      const float x = (static_cast<float>(column) + 0.5F) * static_cast<float>(stride);
      for (const Box& box : around) {
        anchors.push_back({box.left + x, box.top + y, box.right + x, box.bottom + y});
      }
    }
  }
  return anchors;
}

}  // namespace etude::suite
