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

// What a rank stands at.
struct SimWait {
  int64_t rank = 0;
  std::optional<uint64_t> node;  // id in its file; nullopt: it has begun nothing that is not done
  int64_t since = 0;             // ns
  std::string what;              // "8 bytes from rank 1 with tag 0"
  std::optional<int64_t> for_rank;  // who has not come to it
};

// Why ranks wait for ever.
struct SimDiagnosis {
  enum class End : uint8_t {
    kCycle,    // the last one waits for one before it
    kDone,     // the last one waits for a rank that is done
    kUnknown,  // nobody in particular is missing: what has come does not fit
  };

  std::vector<int64_t> waiting;  // ranks
  std::vector<SimWait> chain;    // from the first of them on, each for the next
  End end = End::kUnknown;
};

// nullopt: all ranks are finished.
std::optional<SimDiagnosis> Diagnose(const SimWorkload& workload, const SimResult& result,
                                     const Arrivals& arrivals);

// A line for each in the chain, and one that says where it ends. `name` says where the program of a
// rank comes from: "rank 3", or its file.
std::vector<std::string> ToLines(const SimDiagnosis& diagnosis,
                                 const std::function<std::string(int64_t)>& name);

}  // namespace etude
