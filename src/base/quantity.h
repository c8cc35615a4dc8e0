#pragma once

#include <optional>
#include <string_view>

#include "src/base/units.h"

namespace etude {

// "1.5ms", "20 us", "0": a decimal number and its unit (ns, us, µs, ms, s, min), which only 0 may
// lack. nullopt for anything else, for what is no whole number of nanoseconds, and out of range.
std::optional<Nanos> ParseTime(std::string_view text);

// "64MiB", "1.5 GB", "4096": KB, MB … are powers of 1000, KiB, MiB … of 1024; without a unit,
// bytes.
std::optional<Bytes> ParseBytes(std::string_view text);

}  // namespace etude
