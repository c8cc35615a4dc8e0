#pragma once

#include <cstdint>
#include <optional>

#include "src/base/container/id.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/program/sim_program.h"
#include "src/trace/trace.h"

namespace etude {

// Memory use of a rank in a simulation, from the sizes that its trace states.
struct SimMemory {
  // false: the sizes are from the tensor lists "inputs" and "outputs" of STAGE, in an unknown unit.
  // true: bytes by a formula (etude generate --memory).
  bool in_bytes = true;
  int64_t peak = 0;
  int64_t at = 0;        // ns, first time of the peak
  NodeId node;           // node that began at the peak; kNone: the peak is the initial use
  int64_t before = 0;    // in use before the first node
  int64_t after = 0;     // in use after the last node
  uint64_t unknown = 0;  // tensors without a stated size
};

// Computes the memory use. A tensor lives from the begin of the first node that outputs it, or from
// the start if it is only read, until the end of the last node that reads it, or to the end if none
// does. nullopt: the trace does not describe memory. O(n log n).
std::optional<SimMemory> FindSimMemory(const Trace& trace, const SimProgram& program,
                                       const SimRankResult& result);

}  // namespace etude
