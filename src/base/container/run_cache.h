#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Cache of values that several parts of a run need, such as data read for each rank of a job. Over
// its byte limit it evicts the least recently used values. Callers share ownership, so a value in
// use stays alive. Thread-safe: concurrent callers of one key wait for the value to be made.
class RunCache {
 public:
  explicit RunCache(uint64_t most_bytes = uint64_t{256} << 20) : most_bytes_(most_bytes) {}

  // Returns the value of `key`, and makes it with `make` if it is missing. `make` returns a
  // Result<T>; `bytes_of` returns the size of a T. One key must always use the same type. Errors
  // are not cached.
  template <typename T, typename Make, typename BytesOf>
  Result<std::shared_ptr<const T>> Get(const std::string& key, Make make, BytesOf bytes_of) {
    const std::shared_ptr<Entry> entry = Find(key);
    const std::lock_guard making(entry->mutex);
    if (!entry->value) {
      Result<T> made = make();
      if (!made) return tl::unexpected<Error>(std::move(made).error());
      auto value = std::make_shared<const T>(*std::move(made));
      const uint64_t bytes = bytes_of(*value);
      entry->value = value;
      Keep(entry, bytes);
    }
    return std::static_pointer_cast<const T>(entry->value);
  }

 private:
  struct Entry {
    std::string key;
    std::mutex mutex;
    std::shared_ptr<const void> value;  // guarded by `mutex`
    uint64_t bytes = 0;                 // guarded by the cache's mutex
  };

  // Returns the entry of `key`, added if missing, as the most recently used one.
  std::shared_ptr<Entry> Find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Entry> found;
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if ((*at)->key != key) continue;
      found = std::move(*at);
      entries_.erase(at);
      break;
    }
    if (!found) {
      found = std::make_shared<Entry>();
      found->key = key;
    }
    entries_.push_back(found);
    return found;
  }

  void Keep(const std::shared_ptr<Entry>& entry, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    entry->bytes = bytes;
    uint64_t all = 0;
    size_t first = entries_.size();
    while (first > 0 && all + entries_[first - 1]->bytes <= most_bytes_) {
      all += entries_[--first]->bytes;
    }
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<ptrdiff_t>(first));
  }

  const uint64_t most_bytes_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;  // least recently used first
};

// Calls Get of `cache`; if it is null, makes the value without caching it.
template <typename T, typename Make, typename BytesOf>
Result<std::shared_ptr<const T>> MadeOnce(RunCache* cache, const std::string& key, Make make,
                                          BytesOf bytes_of) {
  RunCache none(0);
  return (cache != nullptr ? *cache : none).Get<T>(key, make, bytes_of);
}

}  // namespace etude
