#pragma once

#include <cstdint>

#include "src/sim/engine/sim_input.h"
#include "src/sim/engine/sim_pool.h"

namespace etude {

// Causal chain of events of one collective, across ranks, with the time between them by component,
// in ns. It starts when `node` of `rank_class` begins.
struct SimChain {
  RankClassId rank_class;
  SimIndex node = 0;  // index in the class's program
  // Time up to which the chain is accounted. For a message in flight: its arrival time if it waits
  // for nothing.
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

// Chains of planned events, by number; kNoIndex: not part of a collective.
using SimChains = SimPool<SimChain>;

}  // namespace etude
