#pragma once

#include <algorithm>
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

// Interned sequences of T: equal sequences get equal ids and are stored once. T must be comparable
// with == and have no padding bytes, because its bytes are hashed. Spans stay valid until the next
// Intern. Const methods are thread-safe; Intern is not.
template <typename T, typename Tag>
class ListPool {
  static_assert(std::has_unique_object_representations_v<T>);

 public:
  using ListId = Id<Tag>;

  ListId Intern(std::span<const T> items) {
    if (index_.empty()) Reindex();
    const uint64_t hash = Hash(items);
    const uint32_t found = index_.Find(hash, [&](uint32_t row) {
      const auto have = Get(ListId(row));
      return std::equal(have.begin(), have.end(), items.begin(), items.end());
    });
    if (found != IndexSet::kAbsent) return ListId(found);
    const ListId id = ListId::FromIndex(size());
    items_.insert(items_.end(), items.begin(), items.end());
    ends_.push_back(items_.size());
    AddToIndex(hash, id.value());
    return id;
  }

  // Returns the list of `id`, which must come from this pool; kNone gives the empty list.
  std::span<const T> Get(ListId id) const {
    if (!id) return {};
    const size_t begin = id.index() == 0 ? 0 : ends_[id.index() - 1];
    return {items_.data() + begin, ends_[id.index()] - begin};
  }

  // Returns true if both pools hold the same lists under the same ids.
  bool SameLists(const ListPool& other) const {
    return ends_ == other.ends_ && items_ == other.items_;
  }
  size_t size() const { return ends_.size(); }
  size_t memory_bytes() const {
    return items_.capacity() * sizeof(T) + ends_.capacity() * sizeof(uint64_t) +
           index_.memory_bytes();
  }

  // Releases spare capacity and the hash index; the next Intern rebuilds the index.
  void Freeze() {
    items_.shrink_to_fit();
    ends_.shrink_to_fit();
    index_.Clear();
  }

 private:
  void AddToIndex(uint64_t hash, uint32_t row) {
    index_.Insert(hash, row, [&](uint32_t other) { return Hash(Get(ListId(other))); });
  }
  void Reindex() {
    for (uint32_t row = 0; row < size(); ++row) AddToIndex(Hash(Get(ListId(row))), row);
  }

  static uint64_t Hash(std::span<const T> items) {
    return TableHash(
        std::string_view(reinterpret_cast<const char*>(items.data()), items.size_bytes()));
  }

  std::vector<T> items_;
  std::vector<uint64_t> ends_;
  IndexSet index_;
};

}  // namespace etude
