#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/report/text/table.h"
#include "src/sim/result/sim_memory.h"

namespace etude {

// Memory of equal ranks.
struct SimMemoryRow {
  int64_t rank = 0;  // first of the ranks
  int64_t ranks = 1;
  SimMemory memory;
  std::string name;              // node at the peak
  std::optional<uint64_t> node;  // its id in the file
};

inline constexpr std::string_view kSimMemoryTable = "memory";  // key

// Returns the rows by memory, descending: in bytes, or in plain numbers if the unit of some sizes
// is unknown.
Table SimMemoryTable(std::vector<SimMemoryRow> rows);

}  // namespace etude
