#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace etude {

struct FigureInterval {
  double low = 0;
  double high = 0;
};

// Returns the interval that leaves the share `tail` of the resampled figures on either side
// (percentile bootstrap, Efron 1979). Requires at least one figure.
inline FigureInterval PercentileInterval(std::vector<double> drawn, double tail = 0.025) {
  std::ranges::sort(drawn);
  const auto at = [&](double share) {
    return drawn[static_cast<size_t>(share * static_cast<double>(drawn.size() - 1))];
  };
  return {.low = at(tail), .high = at(1 - tail)};
}

}  // namespace etude
