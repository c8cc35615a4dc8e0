#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Counts and shares as people read them.
namespace etude {

// "14,392".
std::string FormatCount(uint64_t count);
// "1 node", "14,392 nodes"; `many` where it is not `one` with an s.
std::string FormatCount(uint64_t count, std::string_view one, std::string_view many = "");
// "98.7 %"; `share` in 0..1.
std::string FormatShare(double share);

}  // namespace etude
