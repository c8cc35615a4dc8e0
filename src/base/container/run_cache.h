#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Values that several parts of a run need are made once: what is read for each rank of a job, say.
// Beyond a number of bytes those go that were not used for longest; callers share ownership, so
// that a value in use stays. Thread-safe: who asks for a value that is being made waits for it.
class RunCache {
 public:
  explicit RunCache(uint64_t most_bytes = uint64_t{256} << 20) : most_bytes_(most_bytes) {}

  // The value of `key`, made by `make`, which returns a Result<T>, unless it is there; a key stands
  // for one type. `bytes_of` says how large a T is. Errors are not kept.
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
    std::shared_ptr<const void> value;  // by `mutex`
    uint64_t bytes = 0;                 // by the cache's
  };

  // Puts it last.
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
  std::vector<std::shared_ptr<Entry>> entries_;  // the last used one last
};

// As Get of `cache`, which may be null: then nothing is kept.
template <typename T, typename Make, typename BytesOf>
Result<std::shared_ptr<const T>> MadeOnce(RunCache* cache, const std::string& key, Make make,
                                          BytesOf bytes_of) {
  RunCache none(0);
  return (cache != nullptr ? *cache : none).Get<T>(key, make, bytes_of);
}

}  // namespace etude
