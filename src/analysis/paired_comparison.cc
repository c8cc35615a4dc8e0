#include "src/analysis/paired_comparison.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace etude {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// A number below `count`: the high half of a product, so that every machine draws the same ones
// (std::uniform_int_distribution is not the same everywhere). Its bias is below count / 2^64.
size_t Draw(std::mt19937_64& random, size_t count) {
  const auto product = static_cast<unsigned __int128>(random()) * count;
  return static_cast<size_t>(product >> 64);
}

// Reorders `values`.
double Median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

// Of figures that are not negative.
double ErrorOf(double original, double replay) {
  if (original > 0) return replay / original - 1;
  return replay > 0 ? kInfinite : 0;
}

// The interval of the replications, which it reorders.
Estimate WithInterval(double value, std::vector<double>& replications) {
  const auto at = [&](size_t place) {
    const auto it = replications.begin() + static_cast<std::ptrdiff_t>(place - 1);
    std::ranges::nth_element(replications, it);
    return *it;
  };
  // Of B ordered replications those at B·0.025 and B·0.975.
  const size_t tail = replications.size() / 40;
  return {.value = value, .low = at(tail), .high = at(replications.size() - tail)};
}

}  // namespace

PairedComparison ComparePairs(std::span<const std::vector<FigurePair>> starts, uint64_t seed) {
  std::vector<std::span<const FigurePair>> groups;
  std::vector<double> original, replay;
  bool has_error = true;
  for (const auto& start : starts) {
    if (!start.empty()) groups.emplace_back(start);
    for (const FigurePair& pair : start) {
      original.push_back(pair.original);
      replay.push_back(pair.replay);
      has_error = has_error && pair.original >= 0 && pair.replay >= 0;
    }
  }
  PairedComparison result{.pairs = original.size()};
  if (groups.empty()) return result;
  const double original_median = Median(original);
  const double replay_median = Median(replay);

  std::mt19937_64 random(seed);
  std::vector<double> originals(kBootstrapResamples), replays(kBootstrapResamples);
  std::vector<double> errors(has_error ? kBootstrapResamples : 0);
  for (size_t i = 0; i < kBootstrapResamples; ++i) {
    original.clear();
    replay.clear();
    for (size_t j = 0; j < groups.size(); ++j) {
      const auto group = groups[Draw(random, groups.size())];
      for (size_t k = 0; k < group.size(); ++k) {
        const FigurePair& drawn = group[Draw(random, group.size())];
        original.push_back(drawn.original);
        replay.push_back(drawn.replay);
      }
    }
    originals[i] = Median(original);
    replays[i] = Median(replay);
    if (has_error) errors[i] = ErrorOf(originals[i], replays[i]);
  }
  result.original = WithInterval(original_median, originals);
  result.replay = WithInterval(replay_median, replays);
  if (has_error) result.error = WithInterval(ErrorOf(original_median, replay_median), errors);
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
