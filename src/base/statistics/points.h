#pragma once

#include <cstddef>
#include <vector>

namespace etude {

// PointRows as rows of coordinates; all rows have the same length.
using PointRows = std::vector<std::vector<double>>;

// Returns the squared Euclidean distance.
inline double SquaredDistance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

}  // namespace etude
