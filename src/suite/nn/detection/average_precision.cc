#include "src/suite/nn/detection/average_precision.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace etude::suite {
namespace {

constexpr int64_t kRecalls = 11;

struct Candidate {
  size_t picture = 0;
  Detection detection;
};

// Returns nullopt if the class has no objects.
std::optional<double> PrecisionOfClass(std::span<const Annotation> truth,
                                       std::span<const std::vector<Detection>> found, int64_t label,
                                       float least_overlap) {
  int64_t objects = 0;
  std::vector<std::vector<bool>> taken;  // by picture and object
  for (const Annotation& annotation : truth) {
    taken.emplace_back(annotation.objects.size(), false);
    objects += std::ranges::count_if(annotation.objects, [&](const Object& object) {
      return object.label == label && !object.difficult;
    });
  }
  if (objects == 0) return std::nullopt;
  std::vector<Candidate> candidates;
  for (size_t picture = 0; picture < found.size(); ++picture) {
    for (const Detection& detection : found[picture]) {
      if (detection.label == label) candidates.push_back({picture, detection});
    }
  }
  std::ranges::stable_sort(candidates, std::ranges::greater(),
                           [](const Candidate& candidate) { return candidate.detection.score; });
  std::vector<bool> right;
  for (const Candidate& candidate : candidates) {
    const std::vector<Object>& there = truth[candidate.picture].objects;
    float overlap = least_overlap;
    std::optional<size_t> best;
    for (size_t i = 0; i < there.size(); ++i) {
      if (there[i].label != label) continue;
      const float own = Overlap(candidate.detection.box, there[i].box);
      if (own <= overlap) continue;
      overlap = own;
      best = i;
    }
    if (best && there[*best].difficult) continue;
    right.push_back(best && !taken[candidate.picture][*best]);
    if (best) taken[candidate.picture][*best] = true;
  }
  return ElevenPointPrecision(right, objects);
}

}  // namespace

double ElevenPointPrecision(const std::vector<bool>& right, int64_t objects) {
  if (objects == 0) return 0;
  // best[r]: maximum precision at a recall of at least r tenths.
  std::vector<double> best(kRecalls, 0);
  int64_t hits = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    if (right[i]) ++hits;
    const double precision = static_cast<double>(hits) / static_cast<double>(i + 1);
    const int64_t reached = hits * (kRecalls - 1) / objects;  // tenths, rounded down
    for (int64_t tenth = 0; tenth <= std::min(reached, kRecalls - 1); ++tenth) {
      best[static_cast<size_t>(tenth)] = std::max(best[static_cast<size_t>(tenth)], precision);
    }
  }
  double sum = 0;
  for (const double each : best) sum += each;
  return sum / static_cast<double>(kRecalls);
}

double MeanAveragePrecision(std::span<const Annotation> truth,
                            std::span<const std::vector<Detection>> found, int64_t classes,
                            float least_overlap) {
  double sum = 0;
  int64_t counted = 0;
  for (int64_t label = 0; label < classes; ++label) {
    const std::optional<double> precision = PrecisionOfClass(truth, found, label, least_overlap);
    if (!precision) continue;
    sum += *precision;
    ++counted;
  }
  return counted == 0 ? 0 : sum / static_cast<double>(counted);
}

}  // namespace etude::suite
