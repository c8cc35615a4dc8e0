#pragma once

#include <cstdint>
#include <string_view>

namespace etude {

// Mixes `value` into `seed`; stable across runs and machines. For tables keyed by file contents use
// table_hash.h.
constexpr uint64_t HashMix(uint64_t seed, uint64_t value) {
  uint64_t x = (seed ^ value) * 0x9E3779B97F4A7C15ULL;
  return x ^ (x >> 32);
}

// Packs up to seven bytes into a number, the first byte lowest. Copies have constant sizes, so that
// they compile to single instructions.
inline uint64_t ShortWord(std::string_view bytes) {
  const size_t size = bytes.size();
  if (size >= 4) {
    uint32_t first = 0;
    uint32_t last = 0;
    __builtin_memcpy(&first, bytes.data(), 4);
    __builtin_memcpy(&last, bytes.data() + size - 4, 4);
    return first | uint64_t{last} << (8 * (size - 4));
  }
  uint64_t word = 0;
  for (size_t i = 0; i < size; ++i) {
    word |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

// Returns a hash of `bytes`, stable across runs and machines of the same byte order.
inline uint64_t HashBytes(std::string_view bytes, uint64_t seed = 0) {
  uint64_t hash = HashMix(seed, bytes.size());
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    __builtin_memcpy(&word, bytes.data(), 8);
    hash = HashMix(hash, word);
    bytes.remove_prefix(8);
  }
  hash = HashMix(hash, ShortWord(bytes));
  return HashMix(hash, hash >> 29);
}

}  // namespace etude
