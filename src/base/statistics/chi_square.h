#pragma once

namespace etude {

// Returns P(X ≤ x) for a χ² variable of `freedom` degrees: the regularized incomplete gamma
// function P(freedom / 2, x / 2) by its series or continued fraction (Abramowitz & Stegun 6.5.29,
// 6.5.31), with a relative error below 1e-12. Requires freedom > 0; 0 for x ≤ 0.
double ChiSquareProbability(double x, double freedom);

// Returns the x with ChiSquareProbability(x, freedom) = probability, 0 < probability < 1, by
// bisection.
double ChiSquareQuantile(double probability, double freedom);

}  // namespace etude
