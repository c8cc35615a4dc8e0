#include "src/base/zipf_ranks.h"

#include <algorithm>
#include <cmath>

namespace etude {

ZipfRanks::ZipfRanks(uint64_t count, double exponent)
    : count_(static_cast<double>(count)),
      exponent_(exponent),
      first_(Integral(1.5) - 1),
      last_(Integral(count_ + 0.5)),
      close_(2 - Inverse(Integral(2.5) - std::pow(2, -exponent))) {}

// Both are logarithms near an exponent of 1; this form avoids cancellation there.
double ZipfRanks::Integral(double x) const {
  const double log = std::log(x);
  const double power = (1 - exponent_) * log;
  return std::abs(power) > 1e-8 ? std::expm1(power) / (1 - exponent_) : log * (1 + power / 2);
}

double ZipfRanks::Inverse(double y) const {
  const double power = std::max(y * (1 - exponent_), -1.0);
  return std::abs(power) > 1e-8 ? std::exp(std::log1p(power) / (1 - exponent_))
                                : std::exp(y * (1 - power / 2));
}

uint64_t ZipfRanks::Next(RandomStream& random) const {
  while (true) {
    const double uniform = random.UniformDouble();
    const double area = last_ + uniform * (first_ - last_);
    const double x = Inverse(area);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, count_);
    if (rank - x <= close_ || area >= Integral(rank + 0.5) - std::pow(rank, -exponent_)) {
      return static_cast<uint64_t>(rank);
    }
  }
}

}  // namespace etude
