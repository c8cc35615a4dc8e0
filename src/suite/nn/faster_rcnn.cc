#include "src/suite/nn/faster_rcnn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "src/suite/nn/detection/roi_align.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

// Corners of the two smooth L1 losses, and divisors of region codes, which are small and must have
// the same weight as the classes (Girshick's py-faster-rcnn).
constexpr double kProposalCorner = 1.0 / 9;
constexpr double kRegionCorner = 1;
constexpr std::array<float, 4> kRegionDeviations = {0.1F, 0.1F, 0.2F, 0.2F};
// Standard deviations of the initial weights of the last layers.
constexpr double kClassesStart = 0.01;
constexpr double kCodesStart = 0.001;

at::Tensor OnHost(const at::Tensor& tensor) {
  return tensor.detach().to(at::kFloat).cpu().contiguous();
}

std::span<const float> ValuesOf(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

BoxCode CodeAt(std::span<const float> codes, size_t number) {
  return {codes[4 * number], codes[4 * number + 1], codes[4 * number + 2], codes[4 * number + 3]};
}

// Returns the summed distance of the codes in `rows` of `codes` [N, 4] from `targets`.
at::Tensor DistanceOfCodes(const at::Tensor& codes, const std::vector<int64_t>& rows,
                           const std::vector<float>& targets, double corner) {
  const int64_t count = std::ssize(rows);
  const at::Tensor index = FromValues(std::span<const int64_t>(rows), {count});
  const at::Tensor wanted = FromValues(std::span<const float>(targets), {count, 4});
  return SmoothL1(codes.to(at::kFloat).index_select(0, index.to(codes.device())),
                  wanted.to(codes.device()), corner)
      .sum();
}

at::Tensor LabelLoss(const at::Tensor& logits, const std::vector<int64_t>& labels) {
  const at::Tensor wanted = FromValues(std::span<const int64_t>(labels), {std::ssize(labels)});
  return CrossEntropy(logits.to(at::kFloat), wanted.to(logits.device()), AnchorTargets::kIgnored);
}

Linear SmallLinear(const Scope& scope, int64_t in, int64_t out, double deviation) {
  Linear layer(scope, in, out);
  layer.weight().detach().normal_(0, deviation);
  layer.bias().detach().zero_();
  return layer;
}

}  // namespace

FasterRcnn::FasterRcnn(const Scope& scope, DetectorShape shape, DetectorParts parts)
    : shape_(std::move(shape)),
      parts_(std::move(parts)),
      proposer_(scope["proposer"]["conv"], parts_.channels, shape_.proposal_width,
                {.kernel = {3}, .padding = {1}}, true, Conv2d::Start::kSmall),
      proposer_logits_(scope["proposer"]["logits"], shape_.proposal_width,
                       2 * static_cast<int64_t>(shape_.anchors.count()), {.kernel = {1}}, true,
                       Conv2d::Start::kSmall),
      proposer_codes_(scope["proposer"]["codes"], shape_.proposal_width,
                      4 * static_cast<int64_t>(shape_.anchors.count()), {.kernel = {1}}, true,
                      Conv2d::Start::kSmall),
      classes_(SmallLinear(scope["classes"], parts_.head_width, shape_.classes + 1, kClassesStart)),
      codes_(
          SmallLinear(scope["codes"], parts_.head_width, 4 * (shape_.classes + 1), kCodesStart)) {}

FasterRcnn::Proposer FasterRcnn::AskProposer(const at::Tensor& features) const {
  const at::Tensor hidden = proposer_(features).relu();
  // Reorders [N, anchors × parts, H, W] as in MakeAnchors.
  const auto by_anchor = [&](const at::Tensor& x, int64_t parts) {
    return x.permute({0, 2, 3, 1}).reshape({x.size(0), -1, parts});
  };
  return {MakeAnchors(shape_.anchors, features.size(2), features.size(3), shape_.stride),
          by_anchor(proposer_logits_(hidden), 2), by_anchor(proposer_codes_(hidden), 4)};
}

std::vector<std::vector<Box>> FasterRcnn::Propose(const Proposer& proposer,
                                                  std::span<const PictureSize> sizes,
                                                  const ProposalRule& rule) const {
  const at::Tensor logits = OnHost(proposer.logits);
  const at::Tensor scores = (logits.select(2, 1) - logits.select(2, 0)).contiguous();
  const at::Tensor codes = OnHost(proposer.codes);
  const size_t count = proposer.anchors.size();
  std::vector<std::vector<Box>> proposals;
  for (size_t picture = 0; picture < sizes.size(); ++picture) {
    const auto own_scores = ValuesOf(scores).subspan(picture * count, count);
    const auto own_codes = ValuesOf(codes).subspan(picture * count * 4, count * 4);
    std::vector<size_t> order;
    for (size_t i = 0; i < count; ++i) {
      if (std::isfinite(own_scores[i])) order.push_back(i);
    }
    const size_t looked_at = std::min(rule.before, order.size());
    std::ranges::partial_sort(
        order, order.begin() + static_cast<ptrdiff_t>(looked_at), [&](size_t a, size_t b) {
          return own_scores[a] != own_scores[b] ? own_scores[a] > own_scores[b] : a < b;
        });
    order.resize(looked_at);
    std::vector<Box> boxes;
    std::vector<float> box_scores;
    for (const size_t i : order) {
      const Box box = Clipped(Decode(CodeAt(own_codes, i), proposer.anchors[i]), sizes[picture]);
      // Also false for NaN.
      if (!(box.width() >= rule.least_side && box.height() >= rule.least_side)) continue;
      boxes.push_back(box);
      box_scores.push_back(own_scores[i]);
    }
    std::vector<Box>& kept = proposals.emplace_back();
    for (const size_t i : SuppressNonMaxima(boxes, box_scores, rule.most_overlap, rule.after)) {
      kept.push_back(boxes[i]);
    }
  }
  return proposals;
}

at::Tensor FasterRcnn::ProposerLoss(const Proposer& proposer,
                                    std::span<const Annotation> annotations,
                                    RandomStream& random) const {
  std::vector<int64_t> labels;
  std::vector<int64_t> rows;  // of positive anchors
  std::vector<float> codes;
  for (const Annotation& annotation : annotations) {
    const AnchorTargets targets =
        TargetsOfAnchors(proposer.anchors, annotation, shape_.anchor_rule, random);
    for (const size_t anchor : targets.positives) {
      rows.push_back(std::ssize(labels) + static_cast<int64_t>(anchor));
    }
    labels.insert(labels.end(), targets.labels.begin(), targets.labels.end());
    codes.insert(codes.end(), targets.codes.begin(), targets.codes.end());
  }
  const int64_t sampled = std::ssize(labels) - std::ranges::count(labels, AnchorTargets::kIgnored);
  const at::Tensor of_boxes =
      DistanceOfCodes(proposer.codes.flatten(0, 1), rows, codes, kProposalCorner) /
      static_cast<double>(sampled);
  return of_boxes + LabelLoss(proposer.logits.flatten(0, 1), labels);
}

at::Tensor FasterRcnn::Loss(const at::Tensor& pictures,
                            std::span<const Annotation> annotations) const {
  RandomStream random(static_cast<uint64_t>(Uniform({1}, 0, 1 << 24).item<double>()));
  std::vector<PictureSize> sizes;
  for (const Annotation& annotation : annotations) sizes.push_back(annotation.size);
  const at::Tensor features = parts_.trunk(pictures);
  const Proposer proposer = AskProposer(features);
  const at::Tensor loss = ProposerLoss(proposer, annotations, random);

  std::vector<std::vector<Box>> proposals = Propose(proposer, sizes, shape_.learning);
  std::vector<std::vector<Box>> regions;
  std::vector<int64_t> labels;
  std::vector<int64_t> rows;  // rows of the object's class
  std::vector<float> codes;
  for (size_t picture = 0; picture < annotations.size(); ++picture) {
    // The objects themselves are proposals too, because at first no other proposal is near them.
    for (const Object& object : annotations[picture].objects) {
      proposals[picture].push_back(object.box);
    }
    // Each part must learn in each step, because ranks wait for its gradients.
    if (proposals[picture].empty()) {
      proposals[picture].push_back({0, 0, sizes[picture].width, sizes[picture].height});
    }
    RegionTargets targets =
        TargetsOfRegions(proposals[picture], annotations[picture], shape_.region_rule, random);
    for (const int64_t label : targets.labels) {
      if (label > 0) rows.push_back(std::ssize(labels) * (shape_.classes + 1) + label);
      labels.push_back(label);
    }
    for (size_t i = 0; i < targets.codes.size(); ++i) {
      codes.push_back(targets.codes[i] / kRegionDeviations[i % 4]);
    }
    regions.push_back(std::move(targets.boxes));
  }
  const at::Tensor found =
      parts_.head(RoiAlign(features, regions, shape_.stride, shape_.region_side));
  const at::Tensor of_boxes =
      DistanceOfCodes(codes_(found).reshape({-1, 4}), rows, codes, kRegionCorner) /
      static_cast<double>(labels.size());
  return loss + LabelLoss(classes_(found), labels) + of_boxes;
}

std::vector<std::vector<Detection>> FasterRcnn::Detect(const at::Tensor& pictures,
                                                       std::span<const PictureSize> sizes) const {
  const at::Tensor features = parts_.trunk(pictures);
  const std::vector<std::vector<Box>> regions = Propose(AskProposer(features), sizes, shape_.asked);
  std::vector<std::vector<Detection>> detections(sizes.size());
  if (std::ranges::all_of(regions, &std::vector<Box>::empty)) return detections;
  const at::Tensor found =
      parts_.head(RoiAlign(features, regions, shape_.stride, shape_.region_side));
  const at::Tensor shares = OnHost(classes_(found).to(at::kFloat).softmax(1));
  const at::Tensor codes = OnHost(codes_(found));
  const auto all = static_cast<size_t>(shape_.classes + 1);
  size_t first = 0;  // first region of the picture
  for (size_t picture = 0; picture < sizes.size(); ++picture) {
    std::vector<Detection>& own = detections[picture];
    for (size_t label = 1; label < all; ++label) {
      std::vector<Box> boxes;
      std::vector<float> scores;
      for (size_t i = 0; i < regions[picture].size(); ++i) {
        const size_t place = (first + i) * all + label;
        const float score = ValuesOf(shares)[place];
        if (!(score >= shape_.least_score)) continue;
        BoxCode code = CodeAt(ValuesOf(codes), place);
        for (size_t part = 0; part < code.size(); ++part) code[part] *= kRegionDeviations[part];
        boxes.push_back(Clipped(Decode(code, regions[picture][i]), sizes[picture]));
        scores.push_back(score);
      }
      for (const size_t i :
           SuppressNonMaxima(boxes, scores, shape_.most_overlap, shape_.most_detections)) {
        own.push_back({boxes[i], static_cast<int64_t>(label) - 1, scores[i]});
      }
    }
    first += regions[picture].size();
    std::ranges::stable_sort(own, std::ranges::greater(), &Detection::score);
    if (own.size() > shape_.most_detections) own.resize(shape_.most_detections);
  }
  return detections;
}

}  // namespace etude::suite
