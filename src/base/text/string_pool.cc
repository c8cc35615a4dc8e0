#include "src/base/text/string_pool.h"

#include <algorithm>
#include <cstring>

#include "src/base/container/table_hash.h"

namespace etude {

std::string_view StringPool::Store(std::string_view text) {
  if (text.size() > block_left_) {
    const size_t bytes = std::max(kBlockBytes, text.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    block_end_ = blocks_.back().get() + bytes;
    block_left_ = bytes;
    stored_bytes_ += bytes;
  }
  char* place = block_end_ - block_left_;
  if (!text.empty()) std::memcpy(place, text.data(), text.size());
  block_left_ -= text.size();
  return {place, text.size()};
}

StringId StringPool::Intern(std::string_view text) {
  const uint64_t hash = TableHash(text);
  const uint32_t found = index_.Find(hash, [&](uint32_t row) { return views_[row] == text; });
  if (found != IndexSet::kAbsent) return StringId(found);
  const StringId id = StringId::FromIndex(views_.size());
  views_.push_back(Store(text));
  index_.Insert(hash, id.value(), [&](uint32_t row) { return TableHash(views_[row]); });
  return id;
}

StringPool StringPool::Copy() const {
  StringPool copy;
  copy.views_.reserve(views_.size());
  for (const std::string_view view : views_) copy.views_.push_back(copy.Store(view));
  copy.index_ = index_;
  return copy;
}

StringId StringPool::Find(std::string_view text) const {
  const uint32_t found =
      index_.Find(TableHash(text), [&](uint32_t row) { return views_[row] == text; });
  return found == IndexSet::kAbsent ? StringId::None() : StringId(found);
}

size_t StringPool::memory_bytes() const {
  return stored_bytes_ + views_.capacity() * sizeof(std::string_view) + index_.memory_bytes();
}

}  // namespace etude
