#pragma once

#include <cstdint>

#include "src/sim/machine.h"
#include "src/sim/rank_classes.h"
#include "src/sim/sim_program.h"
#include "src/sim/travel.h"

namespace etude {

// Index of a class of ranks, a node, a message or a stream.
using SimIndex = uint32_t;
inline constexpr SimIndex kNoIndex = UINT32_MAX;

// What is simulated: classes of ranks, each of which its first rank stands for. Where nothing else
// is said, a rank in `src/sim` is the number of a class.
struct SimInput {
  SimInput(const SimMachine& machine_in, const SimWorkload& workload_in,
           const RankClasses& classes_in)
      : machine(machine_in),
        system(machine_in.system),
        workload(workload_in),
        classes(classes_in),
        by_class(!classes_in.is_trivial()),
        travel(machine_in),
        total(travel.total()) {}

  size_t rank_count() const { return classes.first.size(); }
  // The rank itself.
  int64_t PlaceOf(SimIndex rank) const { return classes.first[rank]; }
  SimIndex ClassOf(int64_t place) const { return classes.class_of[static_cast<size_t>(place)]; }
  const SimRank& RankOf(SimIndex rank) const {
    return workload.ranks[static_cast<size_t>(PlaceOf(rank))];
  }
  const SimProgram& ProgramOf(SimIndex rank) const { return *RankOf(rank).program; }

  const SimMachine& machine;
  const SystemModel& system;
  const SimWorkload& workload;
  const RankClasses& classes;
  const bool by_class;
  const Travel travel;
  const int64_t total;  // NPUs
};

}  // namespace etude
