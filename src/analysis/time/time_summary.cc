#include "src/analysis/time/time_summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "src/base/statistics/variation.h"

namespace etude {

Nanos Quantile(const std::vector<Nanos>& sorted, double quantile) {
  const double place = quantile * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = place - static_cast<double>(below);
  // Unsigned: the distance of two times may exceed any time.
  const auto from = static_cast<uint64_t>(sorted[below].count);
  const auto distance = static_cast<uint64_t>(sorted[above].count) - from;
  const auto part = static_cast<uint64_t>(static_cast<double>(distance) * weight);
  return Nanos{static_cast<int64_t>(from + part)};
}

TimeSummary Summarise(std::vector<Nanos> times) {
  if (times.empty()) return {};
  std::ranges::sort(times);
  return {.median = Quantile(times, 0.5),
          .p25 = Quantile(times, 0.25),
          .p75 = Quantile(times, 0.75),
          .min = times.front(),
          .count = times.size()};
}

std::optional<Nanos> Median(std::vector<Nanos> times) {
  if (times.empty()) return std::nullopt;
  return Summarise(std::move(times)).median;
}

std::optional<int64_t> Median(std::vector<int64_t> counts) {
  if (counts.empty()) return std::nullopt;
  const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
  std::ranges::nth_element(counts, middle);
  if (counts.size() % 2 == 1) return *middle;
  return std::midpoint(*std::max_element(counts.begin(), middle), *middle);
}

Nanos Mean(const std::vector<Nanos>& times) {
  int64_t sum = 0;
  for (const Nanos time : times) sum += time.count;
  return Nanos{sum / std::ssize(times)};
}

double ErrorOfMean(const std::vector<Nanos>& times) {
  std::vector<double> figures;
  for (const Nanos time : times) figures.push_back(static_cast<double>(time.count));
  const std::optional<Variation> variation = VariationOf(figures);
  return variation ? variation->coefficient / std::sqrt(static_cast<double>(times.size())) : 0;
}

std::optional<double> RelativeError(const std::optional<TimeSummary>& original,
                                    const std::optional<TimeSummary>& replay) {
  if (!original || !replay || original->median.count <= 0) return std::nullopt;
  return static_cast<double>(replay->median.count) / static_cast<double>(original->median.count) -
         1.0;
}

}  // namespace etude
