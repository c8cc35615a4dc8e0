#pragma once

#include <string_view>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"

namespace etude {

// Parsers of injected faults. Items are separated by blanks; "none" is an empty list. kBadInput
// with the text found and expected.

// Adds stragglers. "3:2": computations of rank 3 take twice as long.
Status AddStragglers(std::string_view text, SimMachine& machine);
// Adds slow links. "0-1:0.5+2us": half of the bandwidth between NPUs 0 and 1, and 2 us more latency
// (optional). "3@0:0.5": all links of NPU 3 in dimension 0.
Status AddSlowLinks(std::string_view text, SimMachine& machine);

}  // namespace etude
