#pragma once

#include <vector>

namespace etude {

// Returns, for each point, whether no other point is at least as good in all figures and better in
// one. Lower is better; all points have the same number of figures.
std::vector<bool> ParetoFront(const std::vector<std::vector<double>>& points);

}  // namespace etude
