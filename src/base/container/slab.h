#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace etude {

// Rows of T with reuse: Add reuses the number of a removed row. Rows never move. Memory grows in
// blocks to the peak number of rows. Not thread-safe.
template <typename T>
class Slab {
 public:
  static constexpr uint32_t kMaxRows = UINT32_MAX - 1;

  // Adds a value-initialized row and returns its number. There must be fewer than kMaxRows rows.
  uint32_t Add() {
    if (!free_.empty()) {
      const uint32_t row = free_.back();
      free_.pop_back();
      (*this)[row] = T();
      return row;
    }
    if (end_ % kBlockRows == 0) blocks_.push_back(std::make_unique<T[]>(kBlockRows));
    return end_++;
  }
  // Removes `row`, which must be in use.
  void Remove(uint32_t row) { free_.push_back(row); }

  T& operator[](uint32_t row) { return blocks_[row / kBlockRows][row % kBlockRows]; }
  const T& operator[](uint32_t row) const { return blocks_[row / kBlockRows][row % kBlockRows]; }

  // Returns the number of rows in use.
  size_t size() const { return end_ - free_.size(); }
  // Returns one past the highest row number ever used.
  uint32_t end() const { return end_; }
  size_t memory_bytes() const {
    return blocks_.size() * kBlockRows * sizeof(T) + blocks_.capacity() * sizeof(blocks_[0]) +
           free_.capacity() * sizeof(uint32_t);
  }

 private:
  static constexpr uint32_t kBlockRows = 4096;

  std::vector<std::unique_ptr<T[]>> blocks_;
  std::vector<uint32_t> free_;
  uint32_t end_ = 0;
};

}  // namespace etude
