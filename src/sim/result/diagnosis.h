#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/program/sim_program.h"
#include "src/sim/result/arrivals.h"

namespace etude {

// Operation at which a rank waits.
struct SimWait {
  int64_t rank = 0;
  std::optional<uint64_t> node;     // id in its file; nullopt: nothing is in progress
  int64_t since = 0;                // ns
  std::string what;                 // "8 bytes from rank 1 with tag 0"
  std::optional<int64_t> for_rank;  // rank that has not reached the operation
};

// Cause of a deadlock.
struct SimDiagnosis {
  enum class End : uint8_t {
    kCycle,    // the last rank waits for an earlier one
    kDone,     // the last rank waits for a finished rank
    kUnknown,  // no rank is missing: arrived messages or sizes do not match
  };

  std::vector<int64_t> waiting;  // ranks
  std::vector<SimWait> chain;    // from the first waiting rank; each waits for the next
  End end = End::kUnknown;
};

// Diagnoses a deadlock. nullopt: all ranks are finished.
std::optional<SimDiagnosis> Diagnose(const SimWorkload& workload, const SimResult& result,
                                     const Arrivals& arrivals);

// Returns a line for each rank of the chain, and one for its end. `name` returns the source of a
// rank's program: "rank 3", or its file.
std::vector<std::string> ToLines(const SimDiagnosis& diagnosis,
                                 const std::function<std::string(int64_t)>& name);

}  // namespace etude
