#pragma once

#include <cstdint>

#include "src/sim/engine/sim_input.h"
#include "src/sim/engine/sim_pool.h"

namespace etude {

// Events of one collective that caused one another, on one rank or several, and what the time
// between them was spent with, in ns. It begins where `node` of `rank_class` does.
struct SimChain {
  RankClassId rank_class;
  SimIndex node = 0;  // of the class's program
  // How far it is accounted; of a message on its way: when it arrives if it waits for nothing.
  int64_t until = 0;
  int64_t latency = 0;
  int64_t transfer = 0;
  int64_t handling = 0;
  int64_t queue = 0;

  void Handle(int64_t now) {
    handling += now - until;
    until = now;
  }
  void Wait(int64_t now) {
    queue += now - until;
    until = now;
  }
};

// Those of what is planned, by number; kNoIndex: of no collective.
using SimChains = SimPool<SimChain>;

}  // namespace etude
