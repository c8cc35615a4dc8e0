#include "src/base/statistics/z_scores.h"

#include <algorithm>
#include <cmath>

namespace etude {

PointRows ZScores(const PointRows& points) {
  PointRows scores = points;
  if (points.empty()) return scores;
  const auto count = static_cast<double>(points.size());
  for (size_t column = 0; column < points.front().size(); ++column) {
    double mean = 0;
    for (const auto& point : points) mean += point[column] / count;
    double variance = 0;
    double largest = 0;
    for (const auto& point : points) {
      variance += (point[column] - mean) * (point[column] - mean) / count;
      largest = std::max(largest, std::abs(point[column]));
    }
    const double deviation = std::sqrt(variance);
    const bool constant = deviation <= 1e-12 * largest;  // rounding only
    for (auto& score : scores) score[column] = constant ? 0 : (score[column] - mean) / deviation;
  }
  return scores;
}

}  // namespace etude
