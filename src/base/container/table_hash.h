#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/container/hash.h"

// Hashes of tables in memory, other ones in each process: no file can be made whose values all meet
// in one place of a table, by which reading it would take quadratic time. They must not become
// part of a result; hashes that do are in hash.h.
namespace etude {

struct TableKeys {
  uint64_t start = 0x9E3779B97F4A7C15ULL;
  uint64_t factor = 0xD1342543DE82EF95ULL;
};

// Those of this process.
inline const TableKeys& ProcessTableKeys() {
  static const TableKeys keys = [] {
    TableKeys drawn;
    // Where the system has none to give, the usual ones do.
    if (getentropy(&drawn, sizeof(drawn)) != 0) drawn = TableKeys();
    drawn.factor |= 1;
    return drawn;
  }();
  return keys;
}

// Both halves of the product: what differs in any bits of `value` differs in bits that only who
// knows the factor can tell.
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
