#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace etude {

// Compressed rows: n spans of T in one array, one span per row. Immutable once built.
template <typename T>
class Csr {
 public:
  Csr() = default;

  // Distributes `items` over `rows` rows. `row_of(item)` returns the row of an item,
  // `value_of(item)` the value to store. Items of one row keep their order. O(rows + items).
  template <typename Items, typename RowOf, typename ValueOf>
  static Csr Build(size_t rows, const Items& items, RowOf row_of, ValueOf value_of) {
    Csr csr;
    csr.begins_.assign(rows + 1, 0);
    for (const auto& item : items) ++csr.begins_[row_of(item) + 1];
    for (size_t row = 0; row < rows; ++row) csr.begins_[row + 1] += csr.begins_[row];
    csr.values_.resize(csr.begins_[rows]);
    std::vector<uint64_t> next(csr.begins_.begin(), csr.begins_.end() - 1);
    for (const auto& item : items) csr.values_[next[row_of(item)]++] = value_of(item);
    return csr;
  }

  std::span<const T> operator[](size_t row) const {
    if (row + 1 >= begins_.size()) return {};
    return {values_.data() + begins_[row], begins_[row + 1] - begins_[row]};
  }
  friend bool operator==(const Csr&, const Csr&) = default;
  size_t rows() const { return begins_.empty() ? 0 : begins_.size() - 1; }
  // Row i is values()[begins()[i]] up to values()[begins()[i + 1]]; both are empty without rows.
  std::span<const uint64_t> begins() const { return begins_; }
  std::span<const T> values() const { return values_; }
  size_t value_count() const { return values_.size(); }
  size_t memory_bytes() const {
    return begins_.capacity() * sizeof(uint64_t) + values_.capacity() * sizeof(T);
  }

 private:
  std::vector<uint64_t> begins_;
  std::vector<T> values_;
};

}  // namespace etude
