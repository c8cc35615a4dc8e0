#pragma once

#include <string>
#include <vector>

#include "src/analysis/memory/memory_use.h"
#include "src/report/text/table.h"

namespace etude {

// Keys of the tables, in their order.
inline const std::vector<std::string> kMemoryTables = {"summary", "peak", "timeline"};

// Memory of devices as one source knows it.
struct MemorySource {
  std::string name;    // "tensors", "formula", "allocator"
  const Trace* trace;  // that the figures are of
  std::vector<DeviceMemory> devices;
};

// What is known of memory, and what the figures leave out, a line each.
struct MemoryFigures {
  std::vector<MemorySource> sources;
  std::vector<std::string> notes;
};
// By the tensors of `trace`, and by its allocators' events or those of `device`, another trace of
// the run, if it is not null: both must outlive the figures.
MemoryFigures FindMemory(const Trace& trace, const Trace* device);

std::vector<Table> MemoryTables(const std::vector<MemorySource>& sources);

}  // namespace etude
