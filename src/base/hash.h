#pragma once

#include <cstdint>
#include <string_view>

namespace etude {

// Mixes `value` into `seed`; good enough for hash tables, stable across runs and machines.
constexpr uint64_t HashMix(uint64_t seed, uint64_t value) {
  uint64_t x = (seed ^ value) * 0x9E3779B97F4A7C15ULL;
  return x ^ (x >> 32);
}

// Hash of `bytes`, stable across runs and machines of the same byte order.
inline uint64_t HashBytes(std::string_view bytes, uint64_t seed = 0) {
  uint64_t hash = HashMix(seed, bytes.size());
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    __builtin_memcpy(&word, bytes.data(), 8);
    hash = HashMix(hash, word);
    bytes.remove_prefix(8);
  }
  uint64_t tail = 0;
  if (!bytes.empty()) __builtin_memcpy(&tail, bytes.data(), bytes.size());
  hash = HashMix(hash, tail);
  return HashMix(hash, hash >> 29);
}

}  // namespace etude
