#include "src/analysis/compare/paired_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "src/analysis/time/time_summary.h"
#include "src/base/statistics/median.h"

namespace etude {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Returns a number below `count`, the high half of a product, the same on every machine (in
// contrast to std::uniform_int_distribution). Its bias is below count / 2^64.
size_t Draw(std::mt19937_64& random, size_t count) {
  const auto product = static_cast<unsigned __int128>(random()) * count;
  return static_cast<size_t>(product >> 64);
}

// Returns there / here for figures that are not negative.
double RatioOf(double here, double there) {
  if (here > 0) return there / here;
  return there > 0 ? kInfinite : 1;
}

double ErrorOf(double original, double replay) { return RatioOf(original, replay) - 1; }

// Returns the interval of the replications, which it reorders.
Estimate WithInterval(double value, std::vector<double>& replications) {
  const auto at = [&](size_t place) {
    const auto it = replications.begin() + static_cast<std::ptrdiff_t>(place - 1);
    std::ranges::nth_element(replications, it);
    return *it;
  };
  // With B ordered replications, the bounds are those at B·0.025 and B·0.975.
  const size_t tail = replications.size() / 40;
  return {.value = value, .low = at(tail), .high = at(replications.size() - tail)};
}

// Pairs of a measurement, by start, and medians of both sides.
class PairSample {
 public:
  explicit PairSample(std::span<const std::vector<FigurePair>> starts) {
    for (const auto& start : starts) {
      if (!start.empty()) groups_.emplace_back(start);
      for (const FigurePair& pair : start) {
        ++pairs_;
        any_negative_ = any_negative_ || !(pair.original >= 0 && pair.replay >= 0);
      }
    }
  }

  size_t pairs() const { return pairs_; }
  bool any_negative() const { return any_negative_; }

  FigurePair Medians() {
    Clear();
    for (const auto group : groups_) {
      for (const FigurePair& pair : group) Add(pair);
    }
    return MediansOfAdded();
  }
  // Returns the medians of a resample: of starts and, within them, of pairs.
  FigurePair Resample(std::mt19937_64& random) {
    Clear();
    for (size_t j = 0; j < groups_.size(); ++j) {
      const auto group = groups_[Draw(random, groups_.size())];
      for (size_t k = 0; k < group.size(); ++k) Add(group[Draw(random, group.size())]);
    }
    return MediansOfAdded();
  }

 private:
  void Clear() {
    original_.clear();
    replay_.clear();
  }
  void Add(const FigurePair& pair) {
    original_.push_back(pair.original);
    replay_.push_back(pair.replay);
  }
  FigurePair MediansOfAdded() { return {MedianInPlace(original_), MedianInPlace(replay_)}; }

  std::vector<std::span<const FigurePair>> groups_;  // starts that have pairs
  size_t pairs_ = 0;
  bool any_negative_ = false;
  std::vector<double> original_, replay_;
};

// A figure that grows from 0 has no ratio to predict.
double ErrorOfRatios(const FigurePair& ratios) {
  if (!std::isfinite(ratios.original) || !std::isfinite(ratios.replay)) return kInfinite;
  return ErrorOf(ratios.original, ratios.replay);
}

FigurePair RatiosOf(const FigurePair& here, const FigurePair& there) {
  return {RatioOf(here.original, there.original), RatioOf(here.replay, there.replay)};
}

}  // namespace

size_t ResamplesOf(size_t pairs) {
  constexpr size_t kMost = 10'000;
  constexpr size_t kLeast = 1'000;
  constexpr size_t kDraws = 10'000'000;
  return std::clamp(kDraws / std::max<size_t>(pairs, 1), kLeast, kMost);
}

PairedComparison ComparePairs(std::span<const std::vector<FigurePair>> starts, uint64_t seed) {
  PairSample sample(starts);
  PairedComparison result{.pairs = sample.pairs()};
  if (sample.pairs() == 0) return result;
  const FigurePair medians = sample.Medians();
  const bool has_error = !sample.any_negative();

  std::mt19937_64 random(seed);
  const size_t resamples = ResamplesOf(sample.pairs());
  std::vector<double> originals(resamples), replays(resamples);
  std::vector<double> errors(has_error ? resamples : 0);
  for (size_t i = 0; i < resamples; ++i) {
    const FigurePair drawn = sample.Resample(random);
    originals[i] = drawn.original;
    replays[i] = drawn.replay;
    if (has_error) errors[i] = ErrorOf(drawn.original, drawn.replay);
  }
  result.original = WithInterval(medians.original, originals);
  result.replay = WithInterval(medians.replay, replays);
  if (has_error) result.error = WithInterval(ErrorOf(medians.original, medians.replay), errors);
  return result;
}

PairedComparison CompareRatios(std::span<const std::vector<FigurePair>> here,
                               std::span<const std::vector<FigurePair>> there, uint64_t seed) {
  PairSample first(here), second(there);
  PairedComparison result{.pairs = std::min(first.pairs(), second.pairs())};
  if (result.pairs == 0 || first.any_negative() || second.any_negative()) return result;
  const FigurePair ratios = RatiosOf(first.Medians(), second.Medians());

  std::mt19937_64 random(seed);
  const size_t resamples = ResamplesOf(std::max(first.pairs(), second.pairs()));
  std::vector<double> originals(resamples), replays(resamples);
  std::vector<double> errors(resamples);
  for (size_t i = 0; i < resamples; ++i) {
    const FigurePair here_drawn = first.Resample(random);
    const FigurePair drawn = RatiosOf(here_drawn, second.Resample(random));
    originals[i] = drawn.original;
    replays[i] = drawn.replay;
    errors[i] = ErrorOfRatios(drawn);
  }
  result.original = WithInterval(ratios.original, originals);
  result.replay = WithInterval(ratios.replay, replays);
  result.error = WithInterval(ErrorOfRatios(ratios), errors);
  return result;
}

std::string_view Name(BarVerdict verdict) {
  switch (verdict) {
    case BarVerdict::kMet: return "met";
    case BarVerdict::kMissed: return "missed";
    case BarVerdict::kUndetermined: return "undetermined";
  }
  return "undetermined";
}

std::optional<BarVerdict> BarVerdictFromName(std::string_view name) {
  for (const BarVerdict verdict :
       {BarVerdict::kMet, BarVerdict::kMissed, BarVerdict::kUndetermined}) {
    if (Name(verdict) == name) return verdict;
  }
  return std::nullopt;
}

BarVerdict Judge(const PairedComparison& comparison, double bar) {
  if (comparison.pairs < kLeastPairs || !comparison.error) return BarVerdict::kUndetermined;
  const Estimate& error = *comparison.error;
  if (error.low >= -bar && error.high <= bar) return BarVerdict::kMet;
  if (error.low > bar || error.high < -bar) return BarVerdict::kMissed;
  return BarVerdict::kUndetermined;
}

}  // namespace etude
