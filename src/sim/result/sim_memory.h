#pragma once

#include <cstdint>
#include <optional>

#include "src/base/container/id.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/program/sim_program.h"
#include "src/trace/trace.h"

namespace etude {

// The memory that a rank has in use in a simulation, as its trace says of its nodes.
struct SimMemory {
  // Of tensors by the lists "inputs" and "outputs" of STAGE, whose sizes have no known unit; else
  // bytes by a formula (etude generate --memory).
  bool in_bytes = true;
  int64_t peak = 0;
  int64_t at = 0;        // ns, when it is first reached
  NodeId node;           // that began then; kNone: at the beginning, by what was there before
  int64_t before = 0;    // in use before the first node
  int64_t after = 0;     // and behind the last one
  uint64_t unknown = 0;  // tensors of which no size is stated
};

// A tensor is there from when the first node that has it among its outputs begins, or from the
// beginning if it is only read, until the last node that reads it has ended, or to the end if none
// does. nullopt: the trace says nothing of memory. O(n log n).
std::optional<SimMemory> FindSimMemory(const Trace& trace, const SimProgram& program,
                                       const SimRankResult& result);

}  // namespace etude
