#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/base/units.h"

namespace etude {

// "12", "-3": a whole number and nothing else; nullopt also out of range.
std::optional<int64_t> ParseWhole(std::string_view text);

// "1.5", "-2e3": a finite number and nothing else; nullopt also out of range.
std::optional<double> ParseDecimal(std::string_view text);

// "1.5ms", "20 us", "0": a decimal number and its unit (ns, us, µs, ms, s, min), which only 0 may
// lack. nullopt for anything else, for what is no whole number of nanoseconds, and out of range.
std::optional<Nanos> ParseTime(std::string_view text);

// "64MiB", "1.5 GB", "4096": KB, MB … are powers of 1000, KiB, MiB … of 1024; without a unit,
// bytes.
std::optional<Bytes> ParseBytes(std::string_view text);

// "989TFLOPS": FLOPS, GFLOPS, TFLOPS and PFLOPS, in powers of 1000.
std::optional<int64_t> ParseOperationsPerSecond(std::string_view text);

}  // namespace etude
