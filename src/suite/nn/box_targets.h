#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/random_stream.h"
#include "src/suite/nn/boxes.h"

// What the two parts of a Faster R-CNN (Ren, 1506.01497) learn from the objects on a picture.
// Difficult objects are left out by the caller.
namespace etude::suite {

// Which anchors are taken for an object or for none, and how many of them are learned from.
struct AnchorRule {
  float least_positive =
      0.7F;                    // overlap with an object; an object's best anchor is positive anyway
  float most_negative = 0.3F;  // below: nothing is there; between: not learned from
  size_t samples = 256;        // a picture
  double positive_share = 0.5;  // at most; negatives fill up
  bool inside_only = true;      // anchors past the picture's edge are left out, unless all are
};
struct AnchorTargets {
  static constexpr int64_t kIgnored = -100;
  std::vector<int64_t> labels;    // by anchor: 1 an object, 0 none, kIgnored
  std::vector<size_t> positives;  // the anchors of label 1, ascending
  std::vector<float> codes;       // four each: where their objects are
};
// Something is learned of each picture that has anchors.
AnchorTargets TargetsOfAnchors(std::span<const Box> anchors, const Annotation& annotation,
                               const AnchorRule& rule, RandomStream& random);

// Which proposals are learned from, and as what.
struct RegionRule {
  float least_positive = 0.5F;  // overlap with an object; below it is background
  size_t samples = 128;         // a picture
  double positive_share = 0.25;
};
struct RegionTargets {
  std::vector<Box> boxes;       // those of objects first
  std::vector<int64_t> labels;  // by box: 0 background, else the object's label + 1
  std::vector<float> codes;     // four for each box of an object
};
RegionTargets TargetsOfRegions(std::span<const Box> proposals, const Annotation& annotation,
                               const RegionRule& rule, RandomStream& random);

}  // namespace etude::suite
