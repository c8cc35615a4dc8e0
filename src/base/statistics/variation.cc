#include "src/base/statistics/variation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "src/base/statistics/chi_square.h"

namespace etude {
namespace {

// Returns the bound of a coefficient for a quantile of χ² with count − 1 degrees of freedom.
double Bound(double coefficient, double count, double quantile) {
  const double root =
      ((quantile + 2) / count - 1) * coefficient * coefficient + quantile / (count - 1);
  if (coefficient == 0) return 0;
  return root > 0 ? coefficient / std::sqrt(root) : std::numeric_limits<double>::infinity();
}

}  // namespace

std::optional<Variation> VariationOf(std::span<const double> figures, double resolution) {
  constexpr double kLevel = 0.95;
  if (figures.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(figures.size());
  double mean = 0;
  for (const double figure : figures) mean += figure / count;
  if (mean <= 0) return std::nullopt;
  double squares = 0;
  for (const double figure : figures) squares += (figure - mean) * (figure - mean);
  const double freedom = count - 1;
  const double coefficient = std::sqrt(squares / freedom) / mean;
  const double rounding = resolution / (2 * std::numbers::sqrt3) / mean;
  return Variation{
      .count = figures.size(),
      .mean = mean,
      .coefficient = coefficient,
      .low = Bound(coefficient, count, ChiSquareQuantile(kLevel, freedom)),
      .high = Bound(std::max(coefficient, rounding), count, ChiSquareQuantile(1 - kLevel, freedom)),
  };
}

}  // namespace etude
