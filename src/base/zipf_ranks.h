#pragma once

#include <cstdint>

#include "src/base/random_stream.h"

namespace etude {

// Generates ranks by Zipf's law: r in [1, count] with probability proportional to r^-exponent.
// Exact rejection-inversion (Hörmann & Derflinger, 1996), a few draws per rank. Requires count > 0
// and exponent >= 0.
class ZipfRanks {
 public:
  ZipfRanks(uint64_t count, double exponent);

  uint64_t Next(RandomStream& random) const;

 private:
  double Integral(double x) const;  // of x^-exponent
  double Inverse(double y) const;   // inverse of Integral

  double count_;
  double exponent_;
  double first_;  // Integral(1.5) - 1
  double last_;   // Integral(count + 0.5)
  double close_;  // ranks this close to the inverse are accepted at once
};

}  // namespace etude
