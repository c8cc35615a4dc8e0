#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace etude::compat {

// A Python int or float. Integer arithmetic stays integral; a float operand makes the result a
// float. Ints have 64 bits; larger results set `overflow`.
struct PyNumber {
  int64_t whole = 0;  // valid if !is_float
  double real = 0;    // valid if is_float
  bool is_float = false;
  bool overflow = false;

  static PyNumber Int(int64_t value) { return {.whole = value}; }
  static PyNumber Float(double value) { return {.real = value, .is_float = true}; }

  double AsDouble() const { return is_float ? real : static_cast<double>(whole); }
};

inline PyNumber operator+(const PyNumber& a, const PyNumber& b) {
  if (a.is_float || b.is_float) {
    PyNumber sum = PyNumber::Float(a.AsDouble() + b.AsDouble());
    sum.overflow = a.overflow || b.overflow;
    return sum;
  }
  PyNumber sum;
  sum.overflow = __builtin_add_overflow(a.whole, b.whole, &sum.whole) || a.overflow || b.overflow;
  return sum;
}

inline PyNumber operator-(const PyNumber& a, const PyNumber& b) {
  if (a.is_float || b.is_float) {
    PyNumber difference = PyNumber::Float(a.AsDouble() - b.AsDouble());
    difference.overflow = a.overflow || b.overflow;
    return difference;
  }
  PyNumber difference;
  difference.overflow =
      __builtin_sub_overflow(a.whole, b.whole, &difference.whole) || a.overflow || b.overflow;
  return difference;
}

// Python compares ints and floats exactly; long double holds both without loss.
inline bool operator<(const PyNumber& a, const PyNumber& b) {
  if (a.is_float && b.is_float) return a.real < b.real;
  if (!a.is_float && !b.is_float) return a.whole < b.whole;
  const auto left =
      a.is_float ? static_cast<long double>(a.real) : static_cast<long double>(a.whole);
  const auto right =
      b.is_float ? static_cast<long double>(b.real) : static_cast<long double>(b.whole);
  return left < right;
}
inline bool operator>(const PyNumber& a, const PyNumber& b) { return b < a; }
inline bool operator==(const PyNumber& a, const PyNumber& b) { return !(a < b) && !(b < a); }
// NaN does not occur: readers refuse it where times are expected.
inline bool operator<=(const PyNumber& a, const PyNumber& b) { return !(b < a); }
inline bool operator>=(const PyNumber& a, const PyNumber& b) { return !(a < b); }

// Returns int(number); nullopt beyond 64 bits.
inline std::optional<int64_t> WholeOf(const PyNumber& number) {
  constexpr double kTooMuch = 9223372036854775808.0;
  if (!number.is_float) return number.whole;
  if (!(number.real >= -kTooMuch && number.real < kTooMuch)) return std::nullopt;
  return static_cast<int64_t>(number.real);
}

// Parses a JSON number; nullopt for NaN, infinities, ints beyond 64 bits and other values.
std::optional<PyNumber> ParsePyNumber(std::string_view json);

}  // namespace etude::compat
