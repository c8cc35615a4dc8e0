#pragma once

#include <vector>

namespace etude {

// Returns the median of at least one figure, the mean of the middle two for an even number;
// reorders `figures`.
double MedianInPlace(std::vector<double>& figures);

}  // namespace etude
