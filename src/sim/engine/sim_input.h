#pragma once

#include <cstdint>

#include "src/sim/engine/rank_classes.h"
#include "src/sim/machine/machine.h"
#include "src/sim/machine/travel.h"
#include "src/sim/program/sim_program.h"

namespace etude {

// Index of a node, a message or a stream.
using SimIndex = uint32_t;
inline constexpr SimIndex kNoIndex = UINT32_MAX;

// Input of a simulation, by classes of ranks; the first rank of a class represents it.
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

  size_t class_count() const { return classes.first.size(); }
  // Returns the first rank of the class.
  int64_t RankOf(RankClassId rank_class) const { return classes.first[rank_class.index()]; }
  RankClassId ClassOf(int64_t rank) const {
    return RankClassId(classes.class_of[static_cast<size_t>(rank)]);
  }
  const SimRank& SimRankOf(RankClassId rank_class) const {
    return workload.ranks[static_cast<size_t>(RankOf(rank_class))];
  }
  const SimProgram& ProgramOf(RankClassId rank_class) const {
    return *SimRankOf(rank_class).program;
  }

  const SimMachine& machine;
  const SystemModel& system;
  const SimWorkload& workload;
  const RankClasses& classes;
  const bool by_class;
  const Travel travel;
  const int64_t total;  // NPUs
};

}  // namespace etude
