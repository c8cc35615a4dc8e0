#pragma once

#include <cstdint>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {

// Allocation of memory or, with 0 bytes, its release.
struct Allocation {
  int64_t time = 0;   // by the clock of the process: threads free memory of others
  int64_t start = 0;  // by the thread's own clock
  uint64_t parent = 0;
  uint64_t tid = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  LaneId lane;
};

// Adds the allocations of a native capture as events of the profiler: nodes with the same
// arguments, and ids after `last_node`. The size of released memory that was allocated before the
// recording is unknown.
void AddAllocations(std::vector<Allocation> allocations, uint64_t last_node, TraceBuilder& builder);

}  // namespace etude
