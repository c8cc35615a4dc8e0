#include "src/suite/nn/box_targets.h"

#include <algorithm>
#include <utility>

namespace etude::suite {
namespace {

// The object that a box overlaps most; where there is none, overlap 0.
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

// At most `count` of `numbers`, each choice as likely; ascending.
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
  const auto counts = [&](const Box& anchor) {
    return !rule.inside_only || LiesInside(anchor, annotation.size);
  };
  std::vector<BestObject> best(anchors.size());
  std::vector<float> best_of_object(objects.size(), 0);
  for (size_t i = 0; i < anchors.size(); ++i) {
    if (!counts(anchors[i])) continue;
    best[i] = FindBest(anchors[i], objects);
    for (size_t object = 0; object < objects.size(); ++object) {
      best_of_object[object] =
          std::max(best_of_object[object], Overlap(anchors[i], objects[object].box));
    }
  }
  std::vector<size_t> positives;
  std::vector<size_t> negatives;
  for (size_t i = 0; i < anchors.size(); ++i) {
    if (!counts(anchors[i])) continue;
    bool is_positive = best[i].overlap >= rule.least_positive;
    for (size_t object = 0; object < objects.size() && !is_positive; ++object) {
      is_positive = best_of_object[object] > 0 &&
                    Overlap(anchors[i], objects[object].box) == best_of_object[object];
      if (is_positive) best[i].number = object;
    }
    if (is_positive) {
      positives.push_back(i);
    } else if (best[i].overlap < rule.most_negative) {
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
