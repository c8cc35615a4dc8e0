#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace etude::compat {

// Returns a number with the same order as `value`. NaN is not supported.
inline uint64_t OrderKey(double value) {
  const auto bits = std::bit_cast<uint64_t>(value == 0 ? 0.0 : value);
  return (bits >> 63) != 0 ? ~bits : bits | (uint64_t{1} << 63);
}
inline uint64_t OrderKey(int64_t value) {
  return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63);
}

// Returns the indices of `keys` in ascending order, stable. Linear for close keys, such as times.
std::vector<uint32_t> StableOrder(const std::vector<uint64_t>& keys);

}  // namespace etude::compat
