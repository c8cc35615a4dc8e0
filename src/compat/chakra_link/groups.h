#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/compat/chakra/flat_map.h"

namespace etude::compat {

// Rows by group, in ascending order. Not thread-safe.
class Groups {
 public:
  Groups() : begin_(1) {}
  // `group_of[row]` must be below `groups`, or kNoRow for no group.
  Groups(const std::vector<uint32_t>& group_of, size_t groups) : begin_(groups + 1) {
    for (const uint32_t group : group_of) {
      if (group != kNoRow) ++begin_[group + 1];
    }
    for (size_t i = 1; i <= groups; ++i) begin_[i] += begin_[i - 1];
    rows_.resize(begin_[groups]);
    std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (uint32_t row = 0; row < group_of.size(); ++row) {
      if (group_of[row] != kNoRow) rows_[next[group_of[row]]++] = row;
    }
  }

  std::span<const uint32_t> operator[](size_t group) const {
    return std::span(rows_).subspan(begin_[group], begin_[group + 1] - begin_[group]);
  }
  std::span<uint32_t> operator[](size_t group) {
    return std::span(rows_).subspan(begin_[group], begin_[group + 1] - begin_[group]);
  }
  size_t size() const { return begin_.size() - 1; }

 private:
  std::vector<uint32_t> begin_;
  std::vector<uint32_t> rows_;
};

}  // namespace etude::compat
