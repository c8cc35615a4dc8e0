#include "src/suite/nn/detection/boxes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace etude::suite {
namespace {

void ExpectNear(const Box& box, const Box& wanted) {
  EXPECT_NEAR(box.left, wanted.left, 1e-4);
  EXPECT_NEAR(box.top, wanted.top, 1e-4);
  EXPECT_NEAR(box.right, wanted.right, 1e-4);
  EXPECT_NEAR(box.bottom, wanted.bottom, 1e-4);
}

TEST(Boxes, OverlapIsTheCommonAreaByTheAreaOfBoth) {
  EXPECT_FLOAT_EQ(Overlap({0, 0, 2, 2}, {1, 1, 3, 3}), 1.0F / 7);
  EXPECT_FLOAT_EQ(Overlap({0, 0, 2, 2}, {0, 0, 2, 2}), 1);
  EXPECT_EQ(Overlap({0, 0, 2, 2}, {2, 0, 4, 2}), 0);
  EXPECT_EQ(Overlap({1, 1, 1, 1}, {1, 1, 1, 1}), 0);
  EXPECT_EQ(Overlap({3, 3, 1, 1}, {0, 0, 4, 4}), 0);
}

TEST(Boxes, CodesAreWaysByTheOtherSizeAndLogarithmsOfRatios) {
  const Box against = {0, 0, 4, 4};
  const Box box = {2, 2, 6, 10};
  const BoxCode code = Encode(box, against);
  EXPECT_FLOAT_EQ(code[0], 0.5F);
  EXPECT_FLOAT_EQ(code[1], 1);
  EXPECT_FLOAT_EQ(code[2], 0);
  EXPECT_FLOAT_EQ(code[3], std::log(2.0F));
  ExpectNear(Decode(code, against), box);
  ExpectNear(Decode({0, 0, 0, 100}, against), {0, 2 - 125, 4, 2 + 125});
}

TEST(Boxes, SuppressionKeepsTheBestOfThoseThatOverlap) {
  const std::vector<Box> boxes = {
      {0, 0, 10, 10}, {1, 0, 11, 10}, {20, 0, 30, 10}, {40, 0, 50, 10}, {4, 0, 14, 10}};
  const std::vector<float> scores = {0.8F, 0.9F, 0.1F, std::numeric_limits<float>::quiet_NaN(),
                                     0.7F};
  // 0 overlaps 1 by 90 / 110; 4 overlaps 1 by 70 / 130.
  EXPECT_EQ(SuppressNonMaxima(boxes, scores, 0.6F, 10), (std::vector<size_t>{1, 4, 2}));
  EXPECT_EQ(SuppressNonMaxima(boxes, scores, 0.5F, 10), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(SuppressNonMaxima(boxes, scores, 0.9F, 2), (std::vector<size_t>{1, 0}));
  EXPECT_TRUE(SuppressNonMaxima({}, {}, 0.5F, 10).empty());
}

TEST(Boxes, AnchorsStandAtTheMiddleOfEachPlace) {
  const AnchorShape shape = {.sides = {16}, .ratios = {1, 4}};
  const std::vector<Box> anchors = MakeAnchors(shape, 2, 3, 16);
  ASSERT_EQ(anchors.size(), 12u);
  ExpectNear(anchors[0], {0, 0, 16, 16});
  ExpectNear(anchors[1], {4, -8, 12, 24});  // same area, height / width = 4
  ExpectNear(anchors[2], {16, 0, 32, 16});
  ExpectNear(anchors[6], {0, 16, 16, 32});
}

TEST(Boxes, AnnotationsFollowTheirPicture) {
  const Annotation annotation{.size = {10, 20}, .objects = {{.box = {1, 2, 4, 6}, .label = 3}}};
  const Annotation resized = Resized(annotation, {20, 10});
  ExpectNear(resized.objects[0].box, {2, 1, 8, 3});
  EXPECT_EQ(resized.size.width, 20);
  const Annotation mirrored = Mirrored(annotation);
  ExpectNear(mirrored.objects[0].box, {6, 2, 9, 6});
  EXPECT_EQ(mirrored.objects[0].label, 3);
  ExpectNear(Clipped({-3, 5, 12, 30}, annotation.size), {0, 5, 10, 20});
}

}  // namespace
}  // namespace etude::suite
