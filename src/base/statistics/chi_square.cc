#include "src/base/statistics/chi_square.h"

#include <cmath>

namespace etude {
namespace {

constexpr int kMostTerms = 100'000;

// Returns P(a, x) by its series, which converges fast for x < a + 1.
double GammaSeries(double a, double x) {
  double term = 1 / a;
  double sum = term;
  for (int i = 1; i < kMostTerms && term > 1e-16 * sum; ++i) {
    term *= x / (a + i);
    sum += term;
  }
  return sum * std::exp(a * std::log(x) - x - std::lgamma(a));
}

// Returns 1 − P(a, x) by its continued fraction, evaluated from the front (Lentz 1976).
double GammaFraction(double a, double x) {
  double b = x + 1 - a;
  double c = 1e300;
  double d = 1 / b;
  double product = d;
  for (int i = 1; i < kMostTerms; ++i) {
    const double numerator = -i * (i - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    product *= c * d;
    if (std::abs(c * d - 1) < 1e-15) break;
  }
  return product * std::exp(a * std::log(x) - x - std::lgamma(a));
}

}  // namespace

double ChiSquareProbability(double x, double freedom) {
  if (x <= 0) return 0;
  const double a = freedom / 2;
  const double half = x / 2;
  return half < a + 1 ? GammaSeries(a, half) : 1 - GammaFraction(a, half);
}

double ChiSquareQuantile(double probability, double freedom) {
  double low = 0;
  double high = freedom + 1;
  while (ChiSquareProbability(high, freedom) < probability && high < 1e9) high *= 2;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (ChiSquareProbability(middle, freedom) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace etude
