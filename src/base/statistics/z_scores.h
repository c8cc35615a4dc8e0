#pragma once

#include "src/base/statistics/points.h"

namespace etude {

// Returns (x − mean) / standard deviation of each column, with the deviation of the population
// (divided by n). Columns with a single value become 0.
PointRows ZScores(const PointRows& points);

}  // namespace etude
