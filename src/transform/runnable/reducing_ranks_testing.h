#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "src/transform/runnable/runnable_rank.h"

// For tests only.
namespace etude::testing_runnable {

// Makes ranks that compute for 5 us, reduce `bytes` over all ranks, and compute again.
inline std::vector<RunnableRank> Reducing(int64_t count, int64_t bytes) {
  std::vector<RunnableRank> ranks;
  for (int64_t i = 0; i < count; ++i) {
    RunnableRank rank;
    rank.rank = i;
    rank.world_size = count;
    rank.on_device = true;
    rank.names = {"work", "all_reduce"};
    RunnableNode work;
    work.kind = NodeKind::kKernel;
    work.device = 0;
    work.stream = 7;
    work.lane = 0;
    work.duration = Nanos{5'000};
    RunnableNode reduce;
    reduce.kind = NodeKind::kCollective;
    reduce.name = 1;
    reduce.device = 0;
    reduce.stream = 20;
    reduce.lane = 1;
    reduce.type = CollectiveType::kAllReduce;
    reduce.bytes_in = bytes;
    rank.nodes = {work, reduce, work};
    rank.deps = {0, 1};
    rank.dep_ends = {0, 1, 2};
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

}  // namespace etude::testing_runnable
