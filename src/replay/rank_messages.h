#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/analysis/comm_log.h"
#include "src/replay/stuck_ranks.h"

namespace etude {

// What ranks tell each other through their store, as bytes.
std::string TextOf(const std::vector<uint8_t>& bytes);
std::vector<uint8_t> ToBytes(std::string_view text);

// The opposites throw where it is not what ToBytes wrote.
std::vector<uint8_t> ToBytes(const RankStatus& status);
RankStatus ToStatus(const std::vector<uint8_t>& bytes);

// Of calls what MatchComms compares and says.
std::vector<uint8_t> ToBytes(const CommLog& log);
CommLog ToLog(const std::vector<uint8_t>& bytes);

}  // namespace etude
