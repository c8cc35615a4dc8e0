#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// Order of a job's ranks on the places of a network.
struct RankOrder {
  std::vector<int64_t> ranks;  // by place; empty: by stride
  int64_t stride = 1;          // ranks at this distance become neighbours

  // Parses "0,2,1,3" or "stride:8". kUsage, with the expected form, for other text.
  static Result<RankOrder> Parse(std::string_view text);
};

// Gives the ranks of a job, all of which must be present, the numbers of their places. Groups keep
// their members, now by place. kBadInput if the order is none of so many ranks.
Status ReorderRanks(const RankOrder& order, std::vector<RunnableRank>& ranks);

}  // namespace etude
