#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"
#include "src/sim/result/arrivals.h"
#include "src/trace/words/enums.h"

// Where the time of simulated ranks went, and what collectives took. docs/models/simulation.md has
// the definitions.
namespace etude {

// Of a rank, in ns; each instant of a figure once.
struct SimTimes {
  int64_t compute = 0;        // on the device
  int64_t communication = 0;  // with all who take part
  int64_t memory = 0;         // remote
  int64_t host = 0;           // computations there
  // Without what comes before them in this list: together with compute and idle the step time.
  int64_t exposed_communication = 0;
  int64_t exposed_memory = 0;
  // Idle, by cause.
  int64_t host_wait = 0;   // only the host computes
  int64_t late_wait = 0;   // for others who have not come to a communication
  int64_t early = 0;       // the rank is done
  int64_t other_wait = 0;  // nothing of these

  int64_t idle() const { return host_wait + late_wait + early + other_wait; }
};

struct SimClassAccount {
  int64_t first = 0;  // rank
  int64_t ranks = 0;
  bool finished = false;
  std::optional<int64_t> end;  // of its last work, ns; nullopt: the simulation stopped before
  SimTimes times;
};

struct SimAccount {
  int64_t step = 0;                               // until the last rank is done, ns
  std::vector<SimClassAccount> classes;           // as in SimResult
  std::vector<SimCollectiveAccount> collectives;  // by time, the most first
};

SimAccount AccountOf(const SimWorkload& workload, const SimResult& result,
                     const Arrivals& arrivals);

// The mean rank, in whole ns: parts of the step are rounded so that they add up to it, those up of
// which the most was left.
SimClassAccount MeanOf(const SimAccount& account);

// The data of a collective as nccl-tests counts them, and how many times these cross the network
// on the way of a rank: bus bandwidth = factor · size / time, size / time the algorithm's
// (nccl-tests, doc/PERFORMANCE.md).
double AlgorithmBytes(CollectiveType type, int64_t bytes, int64_t members);
double BusFactor(CollectiveType type, int64_t members);

}  // namespace etude
