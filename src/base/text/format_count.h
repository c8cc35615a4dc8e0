#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/units.h"

// Counts, shares and times as people read them.
namespace etude {

// "14,392".
std::string FormatCount(uint64_t count);
// "1 node", "14,392 nodes"; `many` where it is not `one` with an s.
std::string FormatCount(uint64_t count, std::string_view one, std::string_view many = "");
// "98.7 %"; `share` in 0..1.
std::string FormatShare(double share);
// "1.234 ms", "12.3 µs", "850 ns", "2.500 s", and from 10,000 s on "2.8 h", "4.2 days", "51.2
// years".
std::string FormatTime(Nanos time);

}  // namespace etude
