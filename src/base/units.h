#pragma once

#include <cstdint>

namespace etude {

constexpr int64_t kNanosPerMicro = 1000;

// Time or duration in integer nanoseconds. Times of one trace share an unspecified origin.
struct Nanos {
  int64_t count = 0;

  constexpr double ms() const { return static_cast<double>(count) / 1e6; }

  friend constexpr bool operator==(Nanos, Nanos) = default;
  friend constexpr auto operator<=>(Nanos, Nanos) = default;
  // Saturates: clocks of hostile or broken traces must not overflow.
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

// Returns `count` truncated and saturated. NaN (infinity times zero) becomes the minimum, so that a
// wait for it ends at once and it cannot pass for a measurement.
constexpr Nanos TruncatedNanos(double count) {
  constexpr double kEnd = 0x1p63;  // one past the max
  if (count >= kEnd) return Nanos{INT64_MAX};
  if (!(count > -kEnd)) return Nanos{INT64_MIN};
  return Nanos{static_cast<int64_t>(count)};
}
// Returns `time` times `factor`, truncated and saturated.
constexpr Nanos Scaled(Nanos time, double factor) {
  return TruncatedNanos(static_cast<double>(time.count) * factor);
}

// Size in bytes.
struct Bytes {
  int64_t count = 0;

  friend constexpr bool operator==(Bytes, Bytes) = default;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  // Saturates: sizes in hostile or broken traces must not overflow.
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a.count, b.count, &sum)) sum = b.count > 0 ? INT64_MAX : INT64_MIN;
    return Bytes{sum};
  }
};

}  // namespace etude
