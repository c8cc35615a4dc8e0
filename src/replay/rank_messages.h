#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/replay/stuck_ranks.h"
#include "src/run/calls/comm_log.h"

namespace etude {

// Conversions of messages between ranks in their store.
std::string TextOf(const std::vector<uint8_t>& bytes);
std::vector<uint8_t> ToBytes(std::string_view text);

// Serialize and parse a status. kBadInput for other data, such as a message of another version of
// Etude.
std::vector<uint8_t> ToBytes(const RankStatus& status);
Result<RankStatus> ToStatus(const std::vector<uint8_t>& bytes);

// Serialize and parse the calls that MatchComms compares and reports.
std::vector<uint8_t> ToBytes(const CommLog& log);
Result<CommLog> ToLog(const std::vector<uint8_t>& bytes);

}  // namespace etude
