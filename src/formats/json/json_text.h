#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/units.h"
#include "src/trace/stats.h"

// Small tools for JSON text that readers keep or that their parser does not look into.
namespace etude {

struct JsonCheck {
  bool valid = false;
  // Bare NaN, Infinity and -Infinity, as Python writes them; they do not make the text invalid.
  uint64_t non_finite = 0;
};

// Whether `text` is one JSON value and nothing else. Strings are checked for their end, escapes and
// control bytes, not for UTF-8. Any depth.
JsonCheck CheckJson(std::string_view text);

// The JSON value that `text` begins with, without blanks before or behind it.
struct JsonPrefix {
  std::string_view text;
  uint64_t non_finite = 0;
};
// nullopt if `text` does not begin with a valid value; what follows the value does not matter.
std::optional<JsonPrefix> JsonValueAt(std::string_view text);

// Makes strings of `text` valid and counts what it changed in `stats`: an invalid escape's
// backslash is doubled, raw control bytes become \u00XX (both kRepairedEscape); lone surrogates and
// invalid UTF-8 become U+FFFD (kRepairedUtf8).
void RepairJsonStrings(std::string& text, Stats& stats);

// `text` as a JSON string, quotes included. Invalid UTF-8 passes unchanged.
std::string JsonString(std::string_view text);
void AppendJsonString(std::string_view text, std::string& out);

// A time in microseconds as a JSON number: exactly, without needless zeros.
std::string MicrosText(Nanos time);

// A JSON number as integers; nullopt if it is not a whole number or does not fit. Blanks around it
// are allowed.
std::optional<int64_t> JsonInt(std::string_view token);
std::optional<uint64_t> JsonUint(std::string_view token);

// A time in microseconds, exactly.
struct JsonTime {
  std::optional<Nanos> nanos;  // nullopt: not a number, or out of range
  // It was finer than a nanosecond: rounded, halves to even. Less than a picosecond, as computing
  // with doubles leaves behind, does not count.
  bool rounded = false;
};
JsonTime JsonMicros(std::string_view token);

}  // namespace etude
