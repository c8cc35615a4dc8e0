#pragma once

#include <cstddef>
#include <vector>

#include "src/base/statistics/points.h"

namespace etude {

// Principal components of points (Pearson 1901): eigenvectors of their covariance, by descending
// variance. The largest entry of each axis is positive.
struct PrincipalComponents {
  std::vector<double> variances;  // eigenvalues, with the covariance divided by n − 1
  PointRows axes;                 // a unit vector for each component
  PointRows coordinates;          // of each point, centred; one column for each component

  // Returns the smallest number of components whose variances are at least `share` of the sum.
  size_t CountFor(double share) const;
};

// Uses cyclic Jacobi rotations, exact to rounding. With fewer than two points all variances are 0.
PrincipalComponents PrincipalComponentsOf(const PointRows& points);

}  // namespace etude
