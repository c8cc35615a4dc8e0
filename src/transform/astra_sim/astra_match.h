#pragma once

#include <vector>

#include "src/transform/astra_sim/astra_order.h"
#include "src/transform/astra_sim/astra_rank.h"
#include "src/transform/astra_sim/for_astra_sim.h"

namespace etude {

// Finds the other sides of all communications that run in `plans` (by rank and node): the k-th
// collectives of the ranks of a group, the k-th send and receive between two ranks with a tag. All
// sides get one size, at least `least_gather` bytes for an all-gather. Communications without
// another side are replayed or left out. Reads the groups and missing ranks of `job`, and adds
// notes and messages to it.
void MatchAstraPlans(const std::vector<AstraRank>& ranks, int64_t least_gather,
                     std::vector<std::vector<AstraPlan>>& plans, AstraJob& job);

}  // namespace etude
