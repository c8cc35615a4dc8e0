#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"
#include "src/sim/result/arrivals.h"
#include "src/trace/words/enums.h"

// Time accounting of simulated ranks and collectives. Defined in docs/models/simulation.md.
namespace etude {

// Times of a rank in ns; overlaps are counted once.
struct SimTimes {
  int64_t compute = 0;        // on the device
  int64_t communication = 0;  // with all participants present
  int64_t memory = 0;         // remote
  int64_t host = 0;           // host computations
  // Excluding overlap with the entries above: compute + exposed times + idle = step.
  int64_t exposed_communication = 0;
  int64_t exposed_memory = 0;
  // Idle time by cause.
  int64_t host_wait = 0;   // only the host computes
  int64_t late_wait = 0;   // for participants that have not reached a communication
  int64_t early = 0;       // after the rank's end
  int64_t other_wait = 0;  // any other cause

  int64_t idle() const { return host_wait + late_wait + early + other_wait; }
};

struct SimClassAccount {
  int64_t first = 0;  // first rank
  int64_t ranks = 0;
  bool finished = false;
  std::optional<int64_t> end;  // end of its last work, ns; nullopt: the simulation stopped before
  SimTimes times;
};

struct SimAccount {
  int64_t step = 0;                               // until the end of the last rank, ns
  std::vector<SimClassAccount> classes;           // as in SimResult
  std::vector<SimCollectiveAccount> collectives;  // by time, descending
};

SimAccount AccountOf(const SimWorkload& workload, const SimResult& result,
                     const Arrivals& arrivals);

// Returns the mean rank, in whole ns. Parts of the step are rounded so that they add up to it;
// those with the largest remainders are rounded up.
SimClassAccount MeanOf(const SimAccount& account);

// Return the data of a collective as counted by nccl-tests, and its bus factor: algorithm bandwidth
// = bytes / time, bus bandwidth = factor · algorithm bandwidth (nccl-tests, doc/PERFORMANCE.md).
double AlgorithmBytes(CollectiveType type, int64_t bytes, int64_t members);
double BusFactor(CollectiveType type, int64_t members);

}  // namespace etude
