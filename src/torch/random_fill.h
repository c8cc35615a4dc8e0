#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "src/torch/fill_rule.h"

namespace etude {

// Small fast generator of uniform 64-bit numbers (splitmix64), the same on every machine.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : state_(seed) {}

  uint64_t Next();
  // Uniform in [0, bound), bound > 0.
  uint64_t Below(uint64_t bound);
  // Uniform in [0, 1).
  float Uniform();

 private:
  uint64_t state_;
};

// Puts `items` in an order of which each is as likely (Fisher & Yates).
template <typename Item>
void Shuffle(std::span<Item> items, RandomStream& random) {
  for (size_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[random.Below(left)]);
  }
}

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

// Normal numbers with mean 0 and the given deviation. Long spans repeat a block of a prime number
// of values, which is as good for timing and as quick as a copy.
void FillNormal(std::span<float> out, float deviation, uint64_t seed);
void FillUniform(std::span<float> out, float low, float high, uint64_t seed);

// Integers by a rule of kind kIndex, kOffsets, kSteps, kLengths or kConstant.
void FillIntegers(std::span<int64_t> out, const FillRule& rule, uint64_t seed);
// Bools: rule.high of them true for kMask, else at random.
void FillBools(std::span<uint8_t> out, const FillRule& rule, uint64_t seed);

}  // namespace etude
