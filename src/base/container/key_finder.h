#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace etude {

// Finds the row of a table that has a key as its `name`. Writers give keys in one order, mostly the
// table's, so the search starts at the row behind the one found last. Not thread-safe.
template <typename Row, size_t N>
class KeyFinder {
 public:
  explicit KeyFinder(const std::array<Row, N>& rows) : rows_(rows) {}

  // nullptr if there is none.
  const Row* Find(std::string_view key) {
    size_t at = next_;
    for (size_t i = 0; i < N; ++i) {
      const Row& row = rows_[at];
      at = at + 1 == N ? 0 : at + 1;
      if (row.name.size() != key.size()) continue;
      if (std::memcmp(row.name.data(), key.data(), key.size()) != 0) continue;
      next_ = at;
      return &row;
    }
    return nullptr;
  }

 private:
  const std::array<Row, N>& rows_;
  size_t next_ = 0;
};

}  // namespace etude
