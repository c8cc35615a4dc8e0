#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "src/base/container/id.h"
#include "src/base/container/index_set.h"

namespace etude {

struct StringTag;
using StringId = Id<StringTag>;

// Interned strings: equal strings get equal ids. Views stay valid for the pool's lifetime,
// including moves. Const methods are thread-safe; Intern is not.
class StringPool {
 public:
  StringPool() = default;
  StringPool(StringPool&&) noexcept = default;
  StringPool& operator=(StringPool&&) noexcept = default;
  // Returns a pool with the same strings under the same ids.
  StringPool Copy() const;

  // Returns the id of `text`. Holds at most 2^32-2 distinct strings; callers bound the number of
  // nodes long before.
  StringId Intern(std::string_view text);
  // Returns the id of `text` if it is interned, else kNone.
  StringId Find(std::string_view text) const;
  // Returns the string of `id`, which must come from this pool; kNone gives the empty string.
  std::string_view Get(StringId id) const { return id ? views_[id.index()] : std::string_view(); }

  // Returns true if both pools hold the same strings under the same ids.
  bool SameStrings(const StringPool& other) const { return views_ == other.views_; }
  size_t size() const { return views_.size(); }
  size_t memory_bytes() const;

 private:
  static constexpr size_t kBlockBytes = 64 * 1024;

  std::string_view Store(std::string_view text);

  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_left_ = 0;
  size_t stored_bytes_ = 0;
  char* block_end_ = nullptr;  // end of the current block; the block_left_ bytes before it are free
  std::vector<std::string_view> views_;
  IndexSet index_;
};

}  // namespace etude
