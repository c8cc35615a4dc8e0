#pragma once

#include <vector>

#include "src/transform/astra_sim/astra_order.h"
#include "src/transform/astra_sim/astra_rank.h"
#include "src/transform/astra_sim/for_astra_sim.h"

namespace etude {

// Finds the other sides of all communications that `plans` (by rank and node) let run: the k-th
// collectives of the ranks of a group, the k-th send and receive between two ranks with a tag. All
// sides get one size, of an all-gather `least_gather` bytes at least. What has no other side is
// replayed or left out. Reads the groups and missing ranks of `job`, adds notes and messages to it.
void MatchAstraPlans(const std::vector<AstraRank>& ranks, int64_t least_gather,
                     std::vector<std::vector<AstraPlan>>& plans, AstraJob& job);

}  // namespace etude
