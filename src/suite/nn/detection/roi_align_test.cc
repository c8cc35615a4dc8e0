#include "src/suite/nn/detection/roi_align.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

// Returns 10 y + x at position (x, y): [pictures, 1, 4, 4], plus 100 for the second picture.
at::Tensor Ramp(int64_t pictures) {
  std::vector<float> values;
  for (int64_t picture = 0; picture < pictures; ++picture) {
    for (int64_t y = 0; y < 4; ++y) {
      for (int64_t x = 0; x < 4; ++x)
        values.push_back(static_cast<float>(100 * picture + 10 * y + x));
    }
  }
  return FromValues(std::span<const float>(values), {pictures, 1, 4, 4});
}

std::vector<float> ValuesOf(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  const auto* begin = flat.const_data_ptr<float>();
  return {begin, begin + flat.numel()};
}

void ExpectValues(const at::Tensor& tensor, const std::vector<float>& wanted) {
  const std::vector<float> found = ValuesOf(tensor);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-4) << i;
}

TEST(RoiAlign, ReadsBetweenTheMiddlesOfPlaces) {
  // Parts of the box coincide with cells: samples at their quarters average to their centres.
  const std::vector<std::vector<Box>> whole = {{{1, 1, 3, 3}}};
  ExpectValues(RoiAlign(Ramp(1), whole, 1, 2), {11, 12, 21, 22});
  // In pixels, two per cell.
  const std::vector<std::vector<Box>> twice = {{{2, 2, 6, 6}}};
  ExpectValues(RoiAlign(Ramp(1), twice, 2, 2), {11, 12, 21, 22});
  // Half a cell further: (1.5, 1.5) is between the centres of 0 and 1, 1 and 2, …
  const std::vector<std::vector<Box>> between = {{{1.5F, 1.5F, 3.5F, 3.5F}}};
  ExpectValues(RoiAlign(Ramp(1), between, 1, 1), {22});
  // Samples at 0.25 and 0.75 of the first cell: left of its centre, -0.25 reads as 0; mean 0.125.
  const std::vector<std::vector<Box>> corner = {{{0, 0, 1, 1}}};
  ExpectValues(RoiAlign(Ramp(1), corner, 1, 1), {1.375F});
}

TEST(RoiAlign, BoxesOfPicturesFollowEachOther) {
  const std::vector<std::vector<Box>> boxes = {{{1, 1, 3, 3}}, {}, {{0, 0, 2, 2}, {2, 2, 4, 4}}};
  ExpectValues(RoiAlign(Ramp(3), boxes, 1, 1), {16.5F, 205.5F, 227.5F});
  const std::vector<std::vector<Box>> none = {{}, {}, {}};
  EXPECT_EQ(RoiAlign(Ramp(3), none, 1, 2).sizes(), (std::vector<int64_t>{0, 1, 2, 2}));
}

TEST(RoiAlign, GradientsGoToWhatWasRead) {
  at::Tensor features = Ramp(1).set_requires_grad(true);
  const std::vector<std::vector<Box>> boxes = {{{1, 1, 3, 3}}};
  RoiAlign(features, boxes, 1, 1).sum().backward();
  const float q = 0.25F;  // the four samples are at the centres of four cells
  ExpectValues(features.grad(), {0, 0, 0, 0, 0, q, q, 0, 0, q, q, 0, 0, 0, 0, 0});
}

}  // namespace
}  // namespace etude::suite
