#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/base/container/id.h"
#include "src/base/container/index_set.h"
#include "src/base/container/table_hash.h"

namespace etude {

// Interned rows: equal rows get equal ids. T must be comparable with == and have no padding bytes,
// because its bytes are hashed. Const methods are thread-safe; Intern is not.
template <typename T, typename Tag>
class InternTable {
  static_assert(std::has_unique_object_representations_v<T>);

 public:
  using RowId = Id<Tag>;

  RowId Intern(const T& value) {
    if (index_.empty()) Reindex();
    const uint64_t hash = Hash(value);
    const uint32_t found = index_.Find(hash, [&](uint32_t row) { return rows_[row] == value; });
    if (found != IndexSet::kAbsent) return RowId(found);
    const RowId id = RowId::FromIndex(rows_.size());
    rows_.push_back(value);
    AddToIndex(hash, id.value());
    return id;
  }

  // Returns the row of `id`, which must come from this table and not be kNone.
  const T& Get(RowId id) const { return rows_[id.index()]; }
  std::span<const T> rows() const { return rows_; }
  // Returns true if both tables hold the same rows under the same ids.
  bool SameRows(const InternTable& other) const { return rows_ == other.rows_; }
  size_t size() const { return rows_.size(); }
  size_t memory_bytes() const { return rows_.capacity() * sizeof(T) + index_.memory_bytes(); }

  // Releases spare capacity and the hash index; the next Intern rebuilds the index.
  void Freeze() {
    rows_.shrink_to_fit();
    index_.Clear();
  }

 private:
  void AddToIndex(uint64_t hash, uint32_t row) {
    index_.Insert(hash, row, [&](uint32_t other) { return Hash(rows_[other]); });
  }
  void Reindex() {
    for (uint32_t row = 0; row < rows_.size(); ++row) AddToIndex(Hash(rows_[row]), row);
  }

  static uint64_t Hash(const T& value) {
    return TableHash(std::string_view(reinterpret_cast<const char*>(&value), sizeof(T)));
  }

  std::vector<T> rows_;
  IndexSet index_;
};

}  // namespace etude
