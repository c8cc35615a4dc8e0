#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace etude::compat {

// A number that compares as `value` does; NaN has no place.
inline uint64_t OrderKey(double value) {
  const auto bits = std::bit_cast<uint64_t>(value == 0 ? 0.0 : value);
  return (bits >> 63) != 0 ? ~bits : bits | (uint64_t{1} << 63);
}
inline uint64_t OrderKey(int64_t value) {
  return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63);
}

// The places of `keys` in ascending order, equal ones as they stand. Linear for keys that are near
// each other, as times are.
std::vector<uint32_t> StableOrder(const std::vector<uint64_t>& keys);

}  // namespace etude::compat
