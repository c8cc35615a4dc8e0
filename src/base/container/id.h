#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace etude {

// Dense index into a table; `Tag` separates kinds of ids. The table's owner hands out ids from 0.
// The default value, kNone, means "none".
template <typename Tag>
class Id {
 public:
  static constexpr uint32_t kNoneValue = std::numeric_limits<uint32_t>::max();

  constexpr Id() = default;
  constexpr explicit Id(uint32_t value) : value_(value) {}
  static constexpr Id FromIndex(size_t index) { return Id(static_cast<uint32_t>(index)); }
  static constexpr Id None() { return Id(); }

  constexpr uint32_t value() const { return value_; }
  constexpr size_t index() const { return value_; }
  constexpr bool is_none() const { return value_ == kNoneValue; }
  constexpr explicit operator bool() const { return !is_none(); }

  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  uint32_t value_ = kNoneValue;
};

}  // namespace etude

template <typename Tag>
struct std::hash<etude::Id<Tag>> {
  size_t operator()(etude::Id<Tag> id) const noexcept { return std::hash<uint32_t>()(id.value()); }
};
