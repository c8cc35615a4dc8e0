#include "src/suite/nn/detection/box_targets.h"

#include <algorithm>
#include <utility>

namespace etude::suite {
namespace {

// The object with maximum overlap with a box; overlap 0 if there is none.
struct BestObject {
  size_t number = 0;
  float overlap = 0;
};
BestObject FindBest(const Box& box, std::span<const Object> objects) {
  BestObject best;
  for (size_t i = 0; i < objects.size(); ++i) {
    const float overlap = Overlap(box, objects[i].box);
    if (overlap > best.overlap) best = {i, overlap};
  }
  return best;
}

bool LiesInside(const Box& box, const PictureSize& size) {
  return box.left >= 0 && box.top >= 0 && box.right <= size.width && box.bottom <= size.height;
}

// Draws up to `count` of `numbers` uniformly; ascending.
std::vector<size_t> Choose(std::vector<size_t> numbers, size_t count, RandomStream& random) {
  if (numbers.size() > count) {
    for (size_t i = 0; i < count; ++i) {
      std::swap(numbers[i], numbers[i + random.Below(numbers.size() - i)]);
    }
    numbers.resize(count);
    std::ranges::sort(numbers);
  }
  return numbers;
}

size_t PartOf(size_t samples, double share) {
  return static_cast<size_t>(static_cast<double>(samples) * share);
}

void Append(std::vector<float>& codes, const BoxCode& code) {
  codes.insert(codes.end(), code.begin(), code.end());
}

}  // namespace

AnchorTargets TargetsOfAnchors(std::span<const Box> anchors, const Annotation& annotation,
                               const AnchorRule& rule, RandomStream& random) {
  const std::vector<Object>& objects = annotation.objects;
  constexpr float kNotAsked = -1;
  const auto lies_inside = [&](const Box& box) { return LiesInside(box, annotation.size); };
  const bool inside_only = rule.inside_only && std::ranges::any_of(anchors, lies_inside);
  std::vector<BestObject> best(anchors.size(), {.overlap = kNotAsked});
  std::vector<float> most(objects.size(), 0);  // overlap of an anchor with each object
  std::vector<std::vector<size_t>> best_anchors(objects.size());
  for (size_t i = 0; i < anchors.size(); ++i) {
    if (inside_only && !lies_inside(anchors[i])) continue;
    best[i] = {};
    for (size_t object = 0; object < objects.size(); ++object) {
      const float overlap = Overlap(anchors[i], objects[object].box);
      if (overlap > best[i].overlap) best[i] = {object, overlap};
      if (overlap == 0 || overlap < most[object]) continue;
      if (overlap > most[object]) best_anchors[object].clear();
      most[object] = overlap;
      best_anchors[object].push_back(i);
    }
  }
  std::vector<bool> is_positive(anchors.size(), false);
  for (size_t object = 0; object < objects.size(); ++object) {
    for (const size_t i : best_anchors[object]) {
      is_positive[i] = true;
      if (best[i].overlap < rule.least_positive) best[i].number = object;
    }
  }
  std::vector<size_t> positives;
  std::vector<size_t> negatives;
  for (size_t i = 0; i < anchors.size(); ++i) {
    if (is_positive[i] || best[i].overlap >= rule.least_positive) {
      positives.push_back(i);
    } else if (best[i].overlap != kNotAsked && best[i].overlap < rule.most_negative) {
      negatives.push_back(i);
    }
  }
  AnchorTargets targets;
  targets.labels.assign(anchors.size(), AnchorTargets::kIgnored);
  targets.positives =
      Choose(std::move(positives), PartOf(rule.samples, rule.positive_share), random);
  for (const size_t i : targets.positives) {
    targets.labels[i] = 1;
    Append(targets.codes, Encode(objects[best[i].number].box, anchors[i]));
  }
  for (const size_t i :
       Choose(std::move(negatives), rule.samples - targets.positives.size(), random)) {
    targets.labels[i] = 0;
  }
  return targets;
}

RegionTargets TargetsOfRegions(std::span<const Box> proposals, const Annotation& annotation,
                               const RegionRule& rule, RandomStream& random) {
  std::vector<BestObject> best;
  std::vector<size_t> positives;
  std::vector<size_t> negatives;
  for (size_t i = 0; i < proposals.size(); ++i) {
    best.push_back(FindBest(proposals[i], annotation.objects));
    (best[i].overlap >= rule.least_positive ? positives : negatives).push_back(i);
  }
  RegionTargets targets;
  for (const size_t i :
       Choose(std::move(positives), PartOf(rule.samples, rule.positive_share), random)) {
    const Object& object = annotation.objects[best[i].number];
    targets.boxes.push_back(proposals[i]);
    targets.labels.push_back(object.label + 1);
    Append(targets.codes, Encode(object.box, proposals[i]));
  }
  for (const size_t i : Choose(std::move(negatives), rule.samples - targets.boxes.size(), random)) {
    targets.boxes.push_back(proposals[i]);
    targets.labels.push_back(0);
  }
  return targets;
}

}  // namespace etude::suite
