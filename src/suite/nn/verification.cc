#include "src/suite/nn/verification.h"

#include <algorithm>
#include <utility>

namespace etude::suite {
namespace {

// The number of pairs of each kind, and how many of them score below some threshold.
struct Counts {
  int64_t same = 0;
  int64_t different = 0;
  int64_t same_below = 0;
  int64_t different_below = 0;

  double Accuracy() const {
    const double right_same =
        same == 0 ? 1 : 1 - static_cast<double>(same_below) / static_cast<double>(same);
    const double right_different =
        different == 0 ? 1 : static_cast<double>(different_below) / static_cast<double>(different);
    return (right_same + right_different) / 2;
  }
};

// Returns the score that classifies most pairs correctly, and the smallest if there are several.
float BestThreshold(const Verification& verification, std::span<const int64_t> chosen_by,
                    std::span<const float> scores) {
  std::vector<std::pair<float, bool>> scored;
  Counts counts;
  for (const int64_t number : chosen_by) {
    const bool same = verification.pairs[static_cast<size_t>(number)].same;
    scored.emplace_back(scores[static_cast<size_t>(number)], same);
    ++(same ? counts.same : counts.different);
  }
  std::ranges::sort(scored);
  float best = 0;
  double best_accuracy = -1;
  for (size_t i = 0; i < scored.size(); ++i) {
    const bool is_new = i == 0 || scored[i].first != scored[i - 1].first;
    if (is_new && counts.Accuracy() > best_accuracy) {
      best = scored[i].first;
      best_accuracy = counts.Accuracy();
    }
    ++(scored[i].second ? counts.same_below : counts.different_below);
  }
  return best;
}

}  // namespace

Verification LeaveTwoPeopleOut(std::span<const int64_t> people) {
  Verification all;
  for (size_t second = 0; second < people.size(); ++second) {
    for (size_t first = 0; first < second; ++first) {
      all.pairs.push_back({static_cast<int64_t>(first), static_cast<int64_t>(second),
                           people[first] == people[second]});
    }
  }
  std::vector<int64_t> names(people.begin(), people.end());
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  for (size_t a = 0; a < names.size(); ++a) {
    for (size_t b = a + 1; b < names.size(); ++b) {
      const auto is_out = [&](int64_t picture) {
        const int64_t person = people[static_cast<size_t>(picture)];
        return person == names[a] || person == names[b];
      };
      Verification::Fold& fold = all.folds.emplace_back();
      for (size_t number = 0; number < all.pairs.size(); ++number) {
        const bool first = is_out(all.pairs[number].first);
        if (first != is_out(all.pairs[number].second)) continue;
        (first ? fold.asked : fold.chosen_by).push_back(static_cast<int64_t>(number));
      }
    }
  }
  return all;
}

Verification LeaveSetOut(std::vector<PicturePair> pairs, int64_t set_size) {
  Verification all{.pairs = std::move(pairs)};
  const int64_t count = std::ssize(all.pairs);
  for (int64_t begin = 0; begin < count; begin += set_size) {
    Verification::Fold& fold = all.folds.emplace_back();
    for (int64_t number = 0; number < count; ++number) {
      const bool is_asked = number >= begin && number < begin + set_size;
      (is_asked ? fold.asked : fold.chosen_by).push_back(number);
    }
  }
  return all;
}

double VerificationAccuracy(const Verification& verification, std::span<const float> scores) {
  double sum = 0;
  for (const Verification::Fold& fold : verification.folds) {
    const float threshold = BestThreshold(verification, fold.chosen_by, scores);
    Counts counts;
    for (const int64_t number : fold.asked) {
      const bool same = verification.pairs[static_cast<size_t>(number)].same;
      ++(same ? counts.same : counts.different);
      if (scores[static_cast<size_t>(number)] >= threshold) continue;
      ++(same ? counts.same_below : counts.different_below);
    }
    sum += counts.Accuracy();
  }
  return sum / static_cast<double>(verification.folds.size());
}

}  // namespace etude::suite
