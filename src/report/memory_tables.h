#pragma once

#include <string>
#include <vector>

#include "src/analysis/memory_use.h"
#include "src/report/table.h"

namespace etude {

// Keys of the tables, in their order.
inline const std::vector<std::string> kMemoryTables = {"summary", "peak", "timeline"};

// Memory of devices as one source knows it.
struct MemorySource {
  std::string name;    // "tensors", "allocator"
  const Trace* trace;  // that the figures are of
  std::vector<DeviceMemory> devices;
};

std::vector<Table> MemoryTables(const std::vector<MemorySource>& sources);

}  // namespace etude
