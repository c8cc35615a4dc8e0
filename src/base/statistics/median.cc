#include "src/base/statistics/median.h"

#include <algorithm>

namespace etude {

double MedianInPlace(std::vector<double>& figures) {
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2);
  std::ranges::nth_element(figures, middle);
  if (figures.size() % 2 == 1) return *middle;
  return (*std::max_element(figures.begin(), middle) + *middle) / 2;
}

}  // namespace etude
