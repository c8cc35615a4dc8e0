#include "src/replay/operator_rounds.h"

#include <algorithm>

#include "src/base/statistics/median.h"

namespace etude {

void OperatorRounds::Add(const std::vector<Nanos>& calls) {
  if (calls.empty()) return;
  std::vector<double> times(calls.size());
  std::ranges::transform(calls, times.begin(),
                         [](Nanos time) { return static_cast<double>(time.count); });
  medians_.push_back(MedianInPlace(times));
  calls_ += static_cast<int64_t>(calls.size());
}

bool OperatorRounds::is_stable() const {
  if (rounds() < kLeastRounds) return false;
  const MeasuredCall time = Time();
  return time.spread <= kStableSpread || time.spread * time.time_ns <= kNegligibleSpreadNs;
}

MeasuredCall OperatorRounds::Time() const {
  std::vector<double> sorted = medians_;
  // Clocks have steps: a call may seem to take no time.
  const double median = std::max(MedianInPlace(sorted), 1.0);
  std::ranges::sort(sorted);
  const auto at = [&](double share) {
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
  };
  const double difference = at(0.75) - at(0.25);
  const double spread = difference / median;
  return {.time_ns = median,
          .spread = spread,
          .calls = calls_,
          .noisy = spread > kMostOperatorSpread && difference > kNegligibleSpreadNs};
}

}  // namespace etude
