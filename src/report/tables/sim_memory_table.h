#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/report/text/table.h"
#include "src/sim/result/sim_memory.h"

namespace etude {

// The memory of ranks that did the same.
struct SimMemoryRow {
  int64_t rank = 0;  // the first of them
  int64_t ranks = 1;
  SimMemory memory;
  std::string name;              // of the node at the peak
  std::optional<uint64_t> node;  // its id in the file
};

inline constexpr std::string_view kSimMemoryTable = "memory";  // key

// The most memory first: in bytes, or, if of some the unit is not known, in plain sizes.
Table SimMemoryTable(std::vector<SimMemoryRow> rows);

}  // namespace etude
