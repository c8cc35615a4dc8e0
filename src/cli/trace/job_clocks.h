#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/run/calls/comm_log.h"

namespace etude {

// What --clocks says of the clocks of several ranks.
inline constexpr const char* kClocksHelp =
    "clocks of ranks: align them by their collectives, or keep them";

// For each log what is to be subtracted from the times of its rank so that all have the clock of
// the first: nothing if `clocks` is "keep" or there is one. kBadInput, with the reason, if an
// offset cannot be told.
Result<std::vector<Nanos>> ClockOffsets(const std::vector<CommLog>& logs,
                                        const std::string& clocks);

}  // namespace etude
