#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/run/calls/comm_log.h"

namespace etude {

// Help of --clocks.
inline constexpr const char* kClocksHelp =
    "clocks of ranks: align them by their collectives, or keep them unchanged";

// Returns, for each log, the offset to subtract from its rank's times to align them with the first
// one's: 0 if `clocks` is "keep" or there is one log. kBadInput with the reason if an offset cannot
// be determined.
Result<std::vector<Nanos>> ClockOffsets(const std::vector<CommLog>& logs,
                                        const std::string& clocks);

}  // namespace etude
