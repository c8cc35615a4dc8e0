#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "src/base/result.h"

namespace etude {

// Limits of a whole number, both included.
struct Bounds {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
};

// Parses a whole number in decimal. Returns kUsage for anything else and for a number out of
// bounds: "found '0', expected 1 to 8".
Result<int64_t> ParseWithin(const std::string& text, Bounds bounds);

// Parses a number. Returns kUsage for anything else and for a number of at most `above`.
Result<double> ParseAbove(const std::string& text,
                          double above = -std::numeric_limits<double>::infinity());

}  // namespace etude
