#pragma once

#include "src/base/statistics/points.h"

namespace etude {

// Returns the area of the convex hull of points in the plane (their first two coordinates), by
// Andrew's monotone chain (1979). 0 for fewer than three points.
double HullArea(const PointRows& points);

}  // namespace etude
