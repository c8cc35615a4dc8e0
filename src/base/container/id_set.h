#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace etude {

// A set of 64-bit numbers that only grows. Numbers without large gaps, as the ids of a file have
// them, take a bit each; scattered ones at most 43 bytes each. Not thread-safe.
class IdSet {
 public:
  // No effect if `id` is in the set.
  void Insert(uint64_t id);
  bool Contains(uint64_t id) const;
  size_t memory_bytes() const;

 private:
  static constexpr uint64_t kWordBits = 64;

  // 64 neighbouring numbers. No bit: an empty place of the table.
  struct Word {
    uint64_t number = 0;
    uint64_t bits = 0;
  };

  bool MakeDense(uint64_t word);
  size_t PlaceOf(uint64_t word) const;
  void GrowScattered();

  std::vector<uint64_t> dense_;  // the words from first_word_ on
  uint64_t first_word_ = 0;
  std::vector<Word> scattered_;  // open addressing; its size is a power of two
  size_t scattered_count_ = 0;
  uint64_t inserts_ = 0;
};

}  // namespace etude
