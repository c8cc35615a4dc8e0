#pragma once

#include <cstdint>

#include "src/base/random_stream.h"

namespace etude {

// Ranks by Zipf's law: r in [1, count] with a probability proportional to r^-exponent. By
// rejection-inversion (Hörmann & Derflinger, 1996), exact, a few draws a rank. count > 0,
// exponent >= 0.
class ZipfRanks {
 public:
  ZipfRanks(uint64_t count, double exponent);

  uint64_t Next(RandomStream& random) const;

 private:
  double Integral(double x) const;  // of x^-exponent
  double Inverse(double y) const;   // of Integral

  double count_;
  double exponent_;
  double first_;  // Integral(1.5) - 1
  double last_;   // Integral(count + 0.5)
  double close_;  // ranks within this of the inverse are taken at once
};

}  // namespace etude
