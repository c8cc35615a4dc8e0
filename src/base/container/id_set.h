#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace etude {

// Grow-only set of 64-bit numbers. Takes one bit per number without large gaps (typical file ids),
// at most 43 bytes per scattered number. Not thread-safe.
class IdSet {
 public:
  // Inserts `id`; no effect if the set contains it.
  void Insert(uint64_t id);
  bool Contains(uint64_t id) const;
  size_t memory_bytes() const;

 private:
  static constexpr uint64_t kWordBits = 64;

  // 64 neighbouring numbers; `bits` == 0 marks an empty table slot.
  struct Word {
    uint64_t number = 0;
    uint64_t bits = 0;
  };

  bool MakeDense(uint64_t word);
  size_t PlaceOf(uint64_t word) const;
  void GrowScattered();

  std::vector<uint64_t> dense_;  // words from first_word_ on
  uint64_t first_word_ = 0;
  std::vector<Word> scattered_;  // open addressing; the size is a power of two
  size_t scattered_count_ = 0;
  uint64_t inserts_ = 0;
};

}  // namespace etude
