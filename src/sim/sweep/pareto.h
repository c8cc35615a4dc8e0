#pragma once

#include <vector>

namespace etude {

// Of points with as many figures each, less being better: whether no other point is as good in all
// figures and better in one.
std::vector<bool> ParetoFront(const std::vector<std::vector<double>>& points);

}  // namespace etude
