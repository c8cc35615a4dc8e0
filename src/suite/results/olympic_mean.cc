#include "src/suite/results/olympic_mean.h"

#include <algorithm>
#include <numeric>

namespace etude::suite {

std::optional<OlympicMean> OlympicMeanOf(RunFigures figures) {
  constexpr size_t kRunsToDrop = 5;
  std::vector<double>& values = figures.values;
  const bool drops = values.size() + figures.missed >= kRunsToDrop;
  if (figures.missed > (drops ? 1U : 0U) || values.empty()) return std::nullopt;
  std::ranges::sort(values);
  if (drops) {
    values.erase(values.begin());
    if (figures.missed == 0) values.pop_back();
  }
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return OlympicMean{.value = sum / static_cast<double>(values.size()), .count = values.size()};
}

}  // namespace etude::suite
