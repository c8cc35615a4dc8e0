#pragma once

#include <cstdint>

#include "src/sim/sim_input.h"
#include "src/sim/sim_pool.h"

namespace etude {

// Events of a collective that follow from one another, on one rank or several: from the begin of
// its node on some rank up to a time, and what the time between was spent with, in ns.
struct SimChain {
  SimIndex rank = 0;  // where it begins
  SimIndex node = 0;  // of the rank's program
  int64_t until = 0;  // that time; of a message on its way: when it arrives if it waits for nothing
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
