#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/random_stream.h"
#include "src/suite/nn/detection/boxes.h"

// Training targets of the two parts of a Faster R-CNN (Ren, 1506.01497). Callers must remove
// difficult objects.
namespace etude::suite {

// Rules for labelling and sampling anchors.
struct AnchorRule {
  float least_positive =
      0.7F;                    // overlap with an object; an object's best anchor is always positive
  float most_negative = 0.3F;  // below: no object; between: ignored
  size_t samples = 256;        // per picture
  double positive_share = 0.5;  // maximum; the rest is negative
  bool inside_only = true;      // ignore anchors across the picture's edge, unless all are
};
struct AnchorTargets {
  static constexpr int64_t kIgnored = -100;
  std::vector<int64_t> labels;    // by anchor: 1 object, 0 none, kIgnored
  std::vector<size_t> positives;  // anchors with label 1, ascending
  std::vector<float> codes;       // four per positive: encoded object box
};
// Each picture with anchors has at least one sample.
AnchorTargets TargetsOfAnchors(std::span<const Box> anchors, const Annotation& annotation,
                               const AnchorRule& rule, RandomStream& random);

// Rules for labelling and sampling proposals.
struct RegionRule {
  float least_positive = 0.5F;  // overlap with an object; below: background
  size_t samples = 128;         // per picture
  double positive_share = 0.25;
};
struct RegionTargets {
  std::vector<Box> boxes;       // boxes with objects first
  std::vector<int64_t> labels;  // by box: 0 background, otherwise the object's label + 1
  std::vector<float> codes;     // four per box with an object
};
RegionTargets TargetsOfRegions(std::span<const Box> proposals, const Annotation& annotation,
                               const RegionRule& rule, RandomStream& random);

}  // namespace etude::suite
