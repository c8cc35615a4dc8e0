#pragma once

#include <string_view>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"

namespace etude {

// Several are separated by blanks; "none" is none. kBadInput with what was found and expected.

// "3:2": rank 3 computes twice as long.
Status AddStragglers(std::string_view text, SimMachine& machine);
// "0-1:0.5", "0-1:0.5+2us": half of the bandwidth between NPUs 0 and 1, and 2 us more of latency;
// "3@0:0.5": on all links of NPU 3 in dimension 0.
Status AddSlowLinks(std::string_view text, SimMachine& machine);

}  // namespace etude
