#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/replay/stuck_ranks.h"
#include "src/run/calls/comm_log.h"

namespace etude {

// What ranks tell each other through their store, as bytes.
std::string TextOf(const std::vector<uint8_t>& bytes);
std::vector<uint8_t> ToBytes(std::string_view text);

// Of the opposites: kBadInput for what ToBytes did not write, as that of another version of Etude.
std::vector<uint8_t> ToBytes(const RankStatus& status);
Result<RankStatus> ToStatus(const std::vector<uint8_t>& bytes);

// Of calls what MatchComms compares and says.
std::vector<uint8_t> ToBytes(const CommLog& log);
Result<CommLog> ToLog(const std::vector<uint8_t>& bytes);

}  // namespace etude
