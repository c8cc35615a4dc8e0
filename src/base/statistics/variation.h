#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace etude {

// Coefficient of variation of positive figures: standard deviation / mean, as a share.
struct Variation {
  size_t count = 0;
  double mean = 0;
  double coefficient = 0;  // with the deviation divided by n − 1
  double low = 0;          // one-sided 95 % bounds; together a 90 % interval
  double high = 0;         // may be infinite
};

// Bounds are those of Vangel (1996) for normal figures, with quantiles of χ² with n − 1 degrees of
// freedom; for small coefficients c they are c · √((n − 1) / χ²). Valid for coefficients up to a
// third. nullopt for fewer than two figures or a mean of at most 0.
// `resolution`: distance of the values that the figures can have, 0 if they are continuous. The
// upper bound is at least that of figures whose deviation is due to rounding, resolution / √12.
std::optional<Variation> VariationOf(std::span<const double> figures, double resolution = 0);

}  // namespace etude
