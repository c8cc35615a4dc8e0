#pragma once

#include <cstdint>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {

// Memory that the allocator gave out or, with 0 bytes, took back.
struct Allocation {
  int64_t time = 0;   // of the process: threads free what others allocated
  int64_t start = 0;  // by the thread's own clock
  uint64_t parent = 0;
  uint64_t tid = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  LaneId lane;
};

// Adds the allocations of a native capture as the events of the profiler: nodes with the arguments
// that those have, whose ids follow `last_node`. What is taken back without having been given out
// in this recording is from before, of a size that nobody knows.
void AddAllocations(std::vector<Allocation> allocations, uint64_t last_node, TraceBuilder& builder);

}  // namespace etude
