#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/units.h"

// Counts, shares and times as readable text.
namespace etude {

// Returns "14,392".
std::string FormatCount(uint64_t count);
// Returns "1 node" or "14,392 nodes"; `many` is the plural if it is not `one` + "s".
std::string FormatCount(uint64_t count, std::string_view one, std::string_view many = "");
// Returns "98.7 %"; `share` is in 0..1.
std::string FormatShare(double share);
// Returns "1.234 ms", "12.3 µs", "850 ns" or "2.500 s"; from 10,000 s on "2.8 h", "4.2 days" or
// "51.2 years".
std::string FormatTime(Nanos time);

}  // namespace etude
