#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace etude {

// Hash index of a table: maps a row's hash to the row's number. Stores numbers only; the table owns
// the rows and compares them. Not thread-safe.
class IndexSet {
 public:
  static constexpr uint32_t kAbsent = UINT32_MAX;

  // Returns the row inserted with `hash` for which `equals(row)` holds, or kAbsent.
  template <typename Equals>
  uint32_t Find(uint64_t hash, Equals equals) const {
    if (slots_.empty()) return kAbsent;
    for (size_t i = hash & mask(); slots_[i].row != kAbsent; i = (i + 1) & mask()) {
      if (slots_[i].hash == static_cast<uint32_t>(hash >> 32) && equals(slots_[i].row)) {
        return slots_[i].row;
      }
    }
    return kAbsent;
  }

  // Removes `row`, which was inserted with `hash`. `hash_of(row)` returns the hash of a remaining
  // row.
  template <typename HashOf>
  void Erase(uint64_t hash, uint32_t row, HashOf hash_of) {
    size_t hole = hash & mask();
    while (slots_[hole].row != row) hole = (hole + 1) & mask();
    // Rows after the hole that a search would no longer reach move into it.
    for (size_t i = (hole + 1) & mask(); slots_[i].row != kAbsent; i = (i + 1) & mask()) {
      const size_t home = hash_of(slots_[i].row) & mask();
      if (((i - home) & mask()) < ((i - hole) & mask())) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = Slot();
    --size_;
  }

  // Inserts `row`, which must not be present. `hash_of(row)` returns the hash of an inserted row.
  template <typename HashOf>
  void Insert(uint64_t hash, uint32_t row, HashOf hash_of) {
    if ((size_ + 1) * 4 > slots_.size() * 3) Grow(hash_of);
    Place(hash, row);
    ++size_;
  }

  bool empty() const { return size_ == 0; }
  size_t memory_bytes() const { return slots_.capacity() * sizeof(Slot); }
  void Clear() { *this = IndexSet(); }

 private:
  struct Slot {
    uint32_t hash = 0;  // upper half of the row's hash
    uint32_t row = kAbsent;
  };

  size_t mask() const { return slots_.size() - 1; }

  void Place(uint64_t hash, uint32_t row) {
    size_t i = hash & mask();
    while (slots_[i].row != kAbsent) i = (i + 1) & mask();
    slots_[i] = Slot{static_cast<uint32_t>(hash >> 32), row};
  }

  template <typename HashOf>
  void Grow(HashOf hash_of) {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.row != kAbsent) Place(hash_of(slot.row), slot.row);
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace etude
