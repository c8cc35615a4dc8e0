#include "src/sim/sweep/pareto.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace etude {

std::vector<bool> ParetoFront(const std::vector<std::vector<double>>& points) {
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) -> const auto& { return points[i]; });
  // A point that beats another is sorted before it, and so is one of the front.
  std::vector<size_t> front;
  std::vector<bool> is_best(points.size());
  for (const size_t i : order) {
    const auto beats = [&](size_t other) {
      return points[other] != points[i] &&
             std::ranges::equal(points[other], points[i], std::ranges::less_equal{});
    };
    if (std::ranges::any_of(front, beats)) continue;
    is_best[i] = true;
    front.push_back(i);
  }
  return is_best;
}

}  // namespace etude
