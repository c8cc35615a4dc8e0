#pragma once

#include <string>
#include <vector>

#include "src/analysis/memory/memory_use.h"
#include "src/report/text/table.h"

namespace etude {

// Keys of the tables, in order.
inline const std::vector<std::string> kMemoryTables = {"summary", "peak", "timeline"};

// Memory of devices from one source.
struct MemorySource {
  std::string name;    // "tensors", "formula", "allocator"
  const Trace* trace;  // the trace of the figures; not owned
  std::vector<DeviceMemory> devices;
};

// Memory figures from all sources, and their limitations, one line each.
struct MemoryFigures {
  std::vector<MemorySource> sources;
  std::vector<std::string> notes;
};
// Computes memory use from the tensors of `trace`, and from the allocator events of `trace` or of
// `device`, another trace of the run (may be null). Both must outlive the result.
MemoryFigures FindMemory(const Trace& trace, const Trace* device);

std::vector<Table> MemoryTables(const std::vector<MemorySource>& sources);

}  // namespace etude
