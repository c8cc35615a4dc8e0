#pragma once

#include <mutex>
#include <optional>

namespace etude {

// Value computed on first use. Thread-safe: it is computed once.
template <typename T>
class Lazy {
 public:
  // Returns the value; the first call computes it with `make`, which returns a T. Later calls
  // ignore `make`.
  template <typename Make>
  const T& Get(const Make& make) const {
    std::call_once(once_, [&] { value_.emplace(make()); });
    return *value_;
  }

 private:
  mutable std::once_flag once_;
  mutable std::optional<T> value_;
};

}  // namespace etude
