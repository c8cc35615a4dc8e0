#include "src/base/statistics/hull_area.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace etude {
namespace {

using Corner = std::pair<double, double>;

// Returns twice the area of the triangle, negative if it turns to the right.
double Turn(const Corner& a, const Corner& b, const Corner& c) {
  return (b.first - a.first) * (c.second - a.second) - (b.second - a.second) * (c.first - a.first);
}

}  // namespace

double HullArea(const PointRows& points) {
  std::vector<Corner> corners;
  for (const auto& point : points) corners.emplace_back(point[0], point[1]);
  std::ranges::sort(corners);
  std::vector<Corner> hull;
  for (int side = 0; side < 2; ++side) {  // the lower, then the upper
    const size_t first = hull.size();
    for (const Corner& corner : corners) {
      while (hull.size() >= first + 2 && Turn(hull[hull.size() - 2], hull.back(), corner) <= 0) {
        hull.pop_back();
      }
      hull.push_back(corner);
    }
    if (!hull.empty()) hull.pop_back();  // begins the other side
    std::ranges::reverse(corners);
  }
  double twice = 0;
  for (size_t i = 1; i + 1 < hull.size(); ++i) twice += Turn(hull[0], hull[i], hull[i + 1]);
  return std::abs(twice) / 2;
}

}  // namespace etude
