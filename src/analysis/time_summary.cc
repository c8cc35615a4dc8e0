#include "src/analysis/time_summary.h"

#include <algorithm>
#include <utility>

namespace etude {

Nanos Quantile(const std::vector<Nanos>& sorted, double quantile) {
  const double place = quantile * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = place - static_cast<double>(below);
  return Nanos{static_cast<int64_t>(static_cast<double>(sorted[below].count) * (1 - weight) +
                                    static_cast<double>(sorted[above].count) * weight)};
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
  const int64_t below = *std::max_element(counts.begin(), middle);
  return below + (*middle - below) / 2;
}

std::optional<double> RelativeError(const std::optional<TimeSummary>& original,
                                    const std::optional<TimeSummary>& replay) {
  if (!original || !replay || original->median.count <= 0) return std::nullopt;
  return static_cast<double>(replay->median.count) / static_cast<double>(original->median.count) -
         1.0;
}

}  // namespace etude
