#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Selects from `ranks`, which are ascending and not empty, the ranks of the value `text` of
// --ranks: "all", a number of first ranks, or a list of ranks and ranges, each rank once: "0-7,12".
// The result is ascending. Returns kUsage for another text, and for ranks that are not in `ranks`.
// `whose` names their owner in messages.
Result<std::vector<int64_t>> ChooseFromRanks(std::string_view text, std::span<const int64_t> ranks,
                                             std::string_view whose);

}  // namespace etude
