#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/container/table_hash.h"

namespace etude::compat {

// Invalid row number.
constexpr uint32_t kNoRow = ~uint32_t{0};

// A hash map from 64-bit keys to 32-bit values with open addressing. Keys cannot be removed. Not
// thread-safe.
class FlatMap {
 public:
  explicit FlatMap(size_t expected = 0) {
    size_t size = 16;
    while (size * 3 < expected * 4) size *= 2;
    cells_.resize(size);
  }

  // Returns the value of `key`, or kNoRow.
  uint32_t Find(uint64_t key) const {
    for (size_t i = Place(key);; i = (i + 1) & (cells_.size() - 1)) {
      if (cells_[i].value == kNoRow) return kNoRow;
      if (cells_[i].key == key) return cells_[i].value;
    }
  }

  // Returns the value of `key`, which is set to `fresh` if the key is new. The reference is valid
  // until the next Insert.
  uint32_t& Insert(uint64_t key, uint32_t fresh) {
    if ((count_ + 1) * 4 > cells_.size() * 3) Grow();
    size_t i = Place(key);
    while (cells_[i].value != kNoRow && cells_[i].key != key) i = (i + 1) & (cells_.size() - 1);
    if (cells_[i].value == kNoRow) {
      cells_[i] = {key, fresh};
      ++count_;
    }
    return cells_[i].value;
  }

  void Set(uint64_t key, uint32_t value) { Insert(key, value) = value; }

 private:
  struct Cell {
    uint64_t key = 0;
    uint32_t value = kNoRow;
  };

  size_t Place(uint64_t key) const { return TableHash(key) & (cells_.size() - 1); }

  void Grow() {
    std::vector<Cell> old(cells_.size() * 2);
    old.swap(cells_);
    for (const Cell& cell : old) {
      if (cell.value == kNoRow) continue;
      size_t i = Place(cell.key);
      while (cells_[i].value != kNoRow) i = (i + 1) & (cells_.size() - 1);
      cells_[i] = cell;
    }
  }

  std::vector<Cell> cells_;
  size_t count_ = 0;
};

}  // namespace etude::compat
