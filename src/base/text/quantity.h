#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/units.h"

namespace etude {

// Parses a whole number ("12", "-3"); nullopt for other text or out of range.
std::optional<int64_t> ParseWhole(std::string_view text);

// Parses a list of whole numbers and ranges from 0 to `most`, such as "0-3,8", in its order;
// nullopt for other text, and for a list of more than `most` + 1 numbers.
std::optional<std::vector<int64_t>> ParseRanges(std::string_view text, int64_t most);

// Parses a finite number ("1.5", "-2e3"); nullopt for other text or out of range.
std::optional<double> ParseDecimal(std::string_view text);

// Parses a decimal number with its unit (ns, us, µs, ms, s, min), such as "1.5ms" or "20 us"; the
// unit is optional for 0. nullopt for other text, for fractions of a nanosecond and out of range.
std::optional<Nanos> ParseTime(std::string_view text);

// Parses a size in bytes: "64MiB", "1.5 GB", "4096" (bytes). KB, MB … are powers of 1000; KiB, MiB
// … are powers of 1024.
std::optional<Bytes> ParseBytes(std::string_view text);

// Parses a size with its unit ("25MiB", "12B"), rounded down to whole bytes.
std::optional<Bytes> ParseBytesWithUnit(std::string_view text);

// Parses "989TFLOPS"; FLOPS, GFLOPS, TFLOPS and PFLOPS are powers of 1000.
std::optional<int64_t> ParseOperationsPerSecond(std::string_view text);

}  // namespace etude
