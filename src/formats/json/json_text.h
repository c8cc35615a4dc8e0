#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/units.h"
#include "src/trace/stats.h"

// Helpers for raw JSON text.
namespace etude {

struct JsonCheck {
  bool valid = false;
  // Number of bare NaN, Infinity and -Infinity, as written by Python; they do not make the text
  // invalid.
  uint64_t non_finite = 0;
};

// Returns whether `text` is exactly one JSON value. Checks the end, escapes and control bytes of
// strings, but not UTF-8. Any depth.
JsonCheck CheckJson(std::string_view text);

// JSON value at the beginning of a text, without blanks around it.
struct JsonPrefix {
  std::string_view text;
  uint64_t non_finite = 0;
};
// Returns nullopt if `text` does not begin with a valid value; ignores text after the value.
std::optional<JsonPrefix> JsonValueAt(std::string_view text);

// Repairs the strings of `text` and counts the changes in `stats`: doubles the backslash of an
// invalid escape, writes raw control bytes as \u00XX (both kRepairedEscape), and replaces lone
// surrogates and invalid UTF-8 by U+FFFD (kRepairedUtf8).
void RepairJsonStrings(std::string& text, Stats& stats);

// Returns `text` as a JSON string with quotes. Invalid UTF-8 is left unchanged.
std::string JsonString(std::string_view text);
void AppendJsonString(std::string_view text, std::string& out);

// Returns a time in microseconds as an exact JSON number, without trailing zeros.
std::string MicrosText(Nanos time);

// Parse a JSON number as an integer; nullopt if it is not a whole number or out of range. Blanks
// around it are allowed.
std::optional<int64_t> JsonInt(std::string_view token);
std::optional<uint64_t> JsonUint(std::string_view token);

// Exact time from a number of microseconds.
struct JsonTime {
  std::optional<Nanos> nanos;  // nullopt: not a number, or out of range
  // True if it was finer than a nanosecond and was rounded, halves to even. Less than a picosecond,
  // as left by computations with doubles, does not count.
  bool rounded = false;
};
JsonTime JsonMicros(std::string_view token);

}  // namespace etude
