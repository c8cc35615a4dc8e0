#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// Form in which all-reduces run.
struct AllReduceForm {
  // 0: a reduce-scatter and an all-gather of all ranks. Otherwise a reduce-scatter among so many
  // neighbouring ranks of a group, an all-reduce of the shards across, and an all-gather.
  int64_t neighbours = 0;

  // Parses "reduce-scatter+all-gather" or "hierarchical:8". kUsage, with the expected form, for
  // other text.
  static Result<AllReduceForm> Parse(std::string_view text);
};

// Replaces all all-reduces of the job's ranks, which must have their numbers, and returns the
// number of all-reduces. Each shard has the bytes of the all-reduce divided by the ranks, rounded
// up. Groups of one rank stay. kBadInput for groups of unknown ranks, and for those that
// `neighbours` does not divide.
Result<uint64_t> ReplaceAllReduces(const AllReduceForm& form, int64_t world_size,
                                   std::vector<RunnableRank>& ranks);

}  // namespace etude
