#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace etude {

// The ranks that the value `text` of --ranks means of `ranks`, which ascend and are at least one:
// "all", how many of the first, or a list of ranks and of ranges, each rank once: "0-7,12".
// Ascending. kUsage for another text, and for ranks that are none of them; `whose` is whose they
// are, for messages.
Result<std::vector<int64_t>> ChooseFromRanks(std::string_view text, std::span<const int64_t> ranks,
                                             std::string_view whose);

}  // namespace etude
