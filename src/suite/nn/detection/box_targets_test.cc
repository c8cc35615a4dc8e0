#include "src/suite/nn/detection/box_targets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace etude::suite {
namespace {

constexpr int64_t kIgnored = AnchorTargets::kIgnored;

TEST(BoxTargets, AnchorsAreOfAnObjectByOverlapOrAsItsBest) {
  const Annotation annotation{
      .size = {100, 100},
      .objects = {{.box = {0, 0, 10, 10}, .label = 4}, {.box = {50, 50, 90, 90}, .label = 1}}};
  const std::vector<Box> anchors = {
      {0, 0, 10, 12},     // overlaps the first by 100 / 120
      {0, 0, 10, 20},     // by 0.5: between
      {50, 50, 70, 70},   // overlaps the second by 400 / 1600: little, but its maximum
      {20, 20, 30, 30},   // no object
      {-2, 50, 10, 62}};  // no object, across the edge
  RandomStream random(1);
  AnchorTargets targets = TargetsOfAnchors(anchors, annotation, {}, random);
  EXPECT_EQ(targets.labels, (std::vector<int64_t>{1, kIgnored, 1, 0, kIgnored}));
  EXPECT_EQ(targets.positives, (std::vector<size_t>{0, 2}));
  ASSERT_EQ(targets.codes.size(), 8u);
  EXPECT_FLOAT_EQ(targets.codes[1], -1.0F / 12);  // from (5, 6) to (5, 5)
  EXPECT_FLOAT_EQ(targets.codes[4], 0.5F);        // from (60, 60) to (70, 70)
  EXPECT_FLOAT_EQ(targets.codes[6], std::log(2.0F));

  targets = TargetsOfAnchors(anchors, annotation, {.inside_only = false}, random);
  EXPECT_EQ(targets.labels[4], 0);

  // If all anchors cross the edge, all count.
  targets = TargetsOfAnchors(std::span(anchors).last(1), annotation, {}, random);
  EXPECT_EQ(targets.labels, (std::vector<int64_t>{0}));

  // At most half of two samples are positive.
  targets = TargetsOfAnchors(anchors, annotation, {.samples = 2}, random);
  EXPECT_EQ(targets.positives.size(), 1u);
  EXPECT_EQ(std::ranges::count(targets.labels, 0), 1);

  // Without objects all samples are negative.
  targets = TargetsOfAnchors(anchors, {.size = {100, 100}}, {.samples = 3}, random);
  EXPECT_TRUE(targets.positives.empty());
  EXPECT_EQ(std::ranges::count(targets.labels, 0), 3);
}

TEST(BoxTargets, AQuarterOfTheRegionsAreObjects) {
  const Annotation annotation{.size = {100, 100}, .objects = {{.box = {0, 0, 10, 10}, .label = 4}}};
  std::vector<Box> proposals;
  for (int i = 0; i < 20; ++i) {
    proposals.push_back({0, 0, 10, 10});
    proposals.push_back({0, 0, 10, 21});  // overlaps by less than half
  }
  RandomStream random(1);
  const RegionTargets targets = TargetsOfRegions(proposals, annotation, {.samples = 8}, random);
  EXPECT_EQ(targets.labels, (std::vector<int64_t>{5, 5, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(targets.boxes[1].bottom, 10);
  EXPECT_EQ(targets.boxes[2].bottom, 21);
  EXPECT_EQ(targets.codes, std::vector<float>(8, 0));
}

}  // namespace
}  // namespace etude::suite
