#pragma once

#include <mutex>
#include <optional>

namespace etude {

// A value that is made when it is first asked for, once, also by several threads.
template <typename T>
class Lazy {
 public:
  // `make` returns a T; what it is at the first call decides.
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
