#include "src/base/statistics/kendall_tau.h"

#include <cmath>
#include <utility>
#include <vector>

#include "src/base/random_stream.h"

namespace etude {

std::optional<double> KendallTau(std::span<const double> a, std::span<const double> b) {
  int64_t score = 0;    // concordant − discordant
  int64_t apart_a = 0;  // pairs that are not tied
  int64_t apart_b = 0;
  const auto order = [](double first, double second) {
    return static_cast<int64_t>(first > second) - static_cast<int64_t>(first < second);
  };
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const int64_t order_a = order(a[i], a[j]);
      const int64_t order_b = order(b[i], b[j]);
      score += order_a * order_b;
      apart_a += order_a * order_a;
      apart_b += order_b * order_b;
    }
  }
  if (apart_a == 0 || apart_b == 0) return std::nullopt;
  return static_cast<double>(score) /
         std::sqrt(static_cast<double>(apart_a) * static_cast<double>(apart_b));
}

std::optional<FigureInterval> KendallInterval(std::span<const double> a, std::span<const double> b,
                                              uint64_t seed, size_t resamples) {
  if (!KendallTau(a, b)) return std::nullopt;
  RandomStream random(seed);
  std::vector<double> drawn;
  while (drawn.size() < resamples) {
    std::vector<double> drawn_a;
    std::vector<double> drawn_b;
    for (size_t i = 0; i < a.size(); ++i) {
      const size_t pair = random.Below(a.size());
      drawn_a.push_back(a[pair]);
      drawn_b.push_back(b[pair]);
    }
    // Copies of one pair only have no tau.
    if (const auto tau = KendallTau(drawn_a, drawn_b)) drawn.push_back(*tau);
  }
  return PercentileInterval(std::move(drawn));
}

}  // namespace etude
