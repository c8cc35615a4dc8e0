#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace etude {

// Small fast generator of uniform 64-bit numbers (SplitMix64 of Steele, Lea & Flood, 2014),
// identical on every machine.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
  }
  // Returns a uniform number in [0, bound), bound > 0.
  uint64_t Below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((Wide{Next()} * bound) >> 64);
  }
  // Return a uniform number in [0, 1), with 24 and with 53 random bits.
  float Uniform() { return static_cast<float>(Next() >> 40) * 0x1p-24F; }
  double UniformDouble() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // Return a uniform number in [low, high).
  float Within(float low, float high) { return low + (high - low) * Uniform(); }
  double Within(double low, double high) { return low + (high - low) * Uniform(); }

 private:
  uint64_t state_;
};

// Shuffles `items`; every order is equally likely (Fisher & Yates).
template <typename Item>
void Shuffle(std::span<Item> items, RandomStream& random) {
  for (size_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[random.Below(left)]);
  }
}

}  // namespace etude
