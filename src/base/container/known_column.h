#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace etude {

// Column of optional values. A column that was never set takes no memory. Const methods are
// thread-safe.
template <typename T>
class KnownColumn {
 public:
  // Sets row `row`; rows in between become unknown.
  void Set(size_t row, T value) {
    if (row == values_.size()) {
      values_.push_back(value);
      if (row % 64 == 0) known_.push_back(0);
    } else if (row > values_.size()) {
      values_.resize(row + 1);
      known_.resize(row / 64 + 1);
    }
    values_[row] = value;
    known_[row / 64] |= uint64_t{1} << (row % 64);
  }
  void SetIf(size_t row, std::optional<T> value) {
    if (value) Set(row, *value);
  }

  // Makes row `row` unknown.
  void Clear(size_t row) {
    if (row >= values_.size()) return;
    values_[row] = T{};
    known_[row / 64] &= ~(uint64_t{1} << (row % 64));
  }

  bool known(size_t row) const {
    return row < values_.size() && ((known_[row / 64] >> (row % 64)) & 1) != 0;
  }
  // Inlined, because an optional returned from a call is written in parts and read as a whole,
  // which is slow.
  [[gnu::always_inline]] std::optional<T> Get(size_t row) const {
    return known(row) ? std::optional<T>(values_[row]) : std::nullopt;
  }
  // Return the values, 0 where unknown, and the known bits: bit i % 64 of word i / 64 is set if
  // value i is known.
  std::span<const T> values() const { return values_; }
  std::span<const uint64_t> known_bits() const { return known_; }
  bool empty() const { return values_.empty(); }
  // Like those of std::vector.
  void reserve(size_t rows) {
    values_.reserve(rows);
    known_.reserve((rows + 63) / 64);
  }
  void shrink_to_fit() {
    values_.shrink_to_fit();
    known_.shrink_to_fit();
  }
  friend bool operator==(const KnownColumn&, const KnownColumn&) = default;
  size_t memory_bytes() const {
    return values_.capacity() * sizeof(T) + known_.capacity() * sizeof(uint64_t);
  }

 private:
  std::vector<T> values_;
  std::vector<uint64_t> known_;  // one bit per row
};

}  // namespace etude
