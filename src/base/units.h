#pragma once

#include <cstdint>

namespace etude {

constexpr int64_t kNanosPerMicro = 1000;

// A time or duration in integer nanoseconds. Times of one trace share an unspecified origin.
struct Nanos {
  int64_t count = 0;

  constexpr double ms() const { return static_cast<double>(count) / 1e6; }

  friend constexpr bool operator==(Nanos, Nanos) = default;
  friend constexpr auto operator<=>(Nanos, Nanos) = default;
  // Saturating: clocks of hostile or broken traces must not overflow.
  friend constexpr Nanos operator+(Nanos a, Nanos b) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a.count, b.count, &sum)) sum = b.count > 0 ? INT64_MAX : INT64_MIN;
    return Nanos{sum};
  }
  friend constexpr Nanos operator-(Nanos a, Nanos b) {
    int64_t difference = 0;
    if (__builtin_sub_overflow(a.count, b.count, &difference)) {
      difference = b.count < 0 ? INT64_MAX : INT64_MIN;
    }
    return Nanos{difference};
  }
};

// `count` truncated and saturated. NaN (an infinite factor times no time) becomes the least time: a
// wait for it ends at once, and it cannot pass for a measurement.
constexpr Nanos TruncatedNanos(double count) {
  constexpr double kEnd = 0x1p63;  // one past the greatest
  if (count >= kEnd) return Nanos{INT64_MAX};
  if (!(count > -kEnd)) return Nanos{INT64_MIN};
  return Nanos{static_cast<int64_t>(count)};
}
// The same of `time`, `factor` times as long.
constexpr Nanos Scaled(Nanos time, double factor) {
  return TruncatedNanos(static_cast<double>(time.count) * factor);
}

// A size in bytes.
struct Bytes {
  int64_t count = 0;

  friend constexpr bool operator==(Bytes, Bytes) = default;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  // Saturating: sizes in hostile or broken traces must not overflow.
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a.count, b.count, &sum)) sum = b.count > 0 ? INT64_MAX : INT64_MIN;
    return Bytes{sum};
  }
};

}  // namespace etude
