#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/container/hash.h"

// Keys of in-memory hash tables, random for each process, so that no file can be crafted whose
// values all collide and make reading quadratic. These hashes must not affect results; stable
// hashes are in hash.h.
namespace etude {

struct TableKeys {
  uint64_t start = 0x9E3779B97F4A7C15ULL;
  uint64_t factor = 0xD1342543DE82EF95ULL;
};

// Returns the keys of this process.
inline const TableKeys& ProcessTableKeys() {
  static const TableKeys keys = [] {
    TableKeys drawn;
    // Without a system source of randomness, the default keys stay.
    if (getentropy(&drawn, sizeof(drawn)) != 0) drawn = TableKeys();
    drawn.factor |= 1;
    return drawn;
  }();
  return keys;
}

// Mixes both halves of the product, so that the effect of any bit of `value` depends on the secret
// factor.
inline uint64_t TableMix(uint64_t hash, uint64_t value, uint64_t factor) {
  const auto product = static_cast<unsigned __int128>(hash ^ value) * factor;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t TableHash(uint64_t value) {
  const TableKeys& keys = ProcessTableKeys();
  return TableMix(keys.start, value, keys.factor);
}

inline uint64_t TableHash(std::string_view bytes) {
  const TableKeys& keys = ProcessTableKeys();
  uint64_t hash = TableMix(keys.start, bytes.size(), keys.factor);
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    __builtin_memcpy(&word, bytes.data(), 8);
    hash = TableMix(hash, word, keys.factor);
    bytes.remove_prefix(8);
  }
  return TableMix(hash, ShortWord(bytes), keys.factor);
}

}  // namespace etude
