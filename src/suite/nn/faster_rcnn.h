#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/detection/box_targets.h"
#include "src/suite/nn/detection/boxes.h"
#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

// Number of boxes that the proposal network returns.
struct ProposalRule {
  size_t before = 12000;  // best boxes considered
  size_t after = 2000;    // maximum of proposals
  float most_overlap = 0.7F;
  float least_side = 1;  // pixels
};

struct DetectorShape {
  int64_t classes = 20;  // without background
  int64_t stride = 16;   // pixels per feature cell
  AnchorShape anchors = {.sides = {128, 256, 512}, .ratios = {0.5F, 1, 2}};
  int64_t proposal_width = 512;  // channels
  int64_t region_side = 7;       // cells across a region's features
  AnchorRule anchor_rule;
  RegionRule region_rule;
  ProposalRule learning;
  ProposalRule asked = {.before = 6000, .after = 300};
  float least_score = 0.01F;  // minimum of a detection
  float most_overlap = 0.3F;  // maximum for two detections of a class
  size_t most_detections = 100;
};

// Networks of a detector. The caller owns their weights.
struct DetectorParts {
  using Network = std::function<at::Tensor(const at::Tensor&)>;
  Network trunk;         // pictures [N, 3, H, W] → features [N, channels, H', W']
  int64_t channels = 0;  // of features
  Network head;          // regions [K, channels, region_side, region_side] → [K, head_width]
  int64_t head_width = 0;
};

// Faster R-CNN (Ren, 1506.01497): one network proposes boxes relative to anchors; another
// classifies and refines them from the features of the box. Matching, sampling and suppression run
// on the CPU for any device.
class FasterRcnn {
 public:
  FasterRcnn(const Scope& scope, DetectorShape shape, DetectorParts parts);

  // Returns the sum of the four losses. Pictures may be padded at the right and bottom.
  at::Tensor Loss(const at::Tensor& pictures, std::span<const Annotation> annotations) const;
  // Returns the detections by picture.
  std::vector<std::vector<Detection>> Detect(const at::Tensor& pictures,
                                             std::span<const PictureSize> sizes) const;

 private:
  // Output of the proposal network for all anchors.
  struct Proposer {
    std::vector<Box> anchors;
    at::Tensor logits;  // [N, anchors, 2]: nothing, an object
    at::Tensor codes;   // [N, anchors, 4]
  };
  Proposer AskProposer(const at::Tensor& features) const;
  std::vector<std::vector<Box>> Propose(const Proposer& proposer,
                                        std::span<const PictureSize> sizes,
                                        const ProposalRule& rule) const;
  at::Tensor ProposerLoss(const Proposer& proposer, std::span<const Annotation> annotations,
                          RandomStream& random) const;

  DetectorShape shape_;
  DetectorParts parts_;
  Conv2d proposer_;
  Conv2d proposer_logits_;
  Conv2d proposer_codes_;
  Linear classes_;
  Linear codes_;
};

}  // namespace etude::suite
