#include "src/report/tables/simulated/sim_memory_table.h"

#include <algorithm>

namespace etude {

Table SimMemoryTable(std::vector<SimMemoryRow> rows) {
  const bool in_bytes =
      std::ranges::all_of(rows, [](const SimMemoryRow& row) { return row.memory.in_bytes; });
  const std::string ending = in_bytes ? "bytes" : "size";
  const Unit unit = in_bytes ? Unit::kBytes : Unit::kCount;
  Table table{.key = std::string(kSimMemoryTable),
              .title = in_bytes ? "memory in use" : "memory in use, in an unknown unit",
              .columns = {{"rank", "rank", Unit::kNumber},
                          {"ranks", "ranks", Unit::kCount},
                          {"peak_" + ending, "peak", unit},
                          {"peak_time_ns", "at", Unit::kTime},
                          {"peak_name", "reached in", Unit::kText},
                          {"peak_node", "node", Unit::kNumber},
                          {"before_" + ending, "before", unit},
                          {"after_" + ending, "after", unit},
                          {"unknown", "without a size", Unit::kCount}},
              .rows = {}};
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const SimMemoryRow& row) { return row.memory.peak; });
  for (const SimMemoryRow& row : rows) {
    const SimMemory& memory = row.memory;
    table.rows.push_back({row.rank, row.ranks, memory.peak, memory.at,
                          row.name.empty() ? Cell() : Cell(row.name),
                          row.node ? CountCell(*row.node) : Cell(), memory.before, memory.after,
                          CountCell(memory.unknown)});
  }
  return table;
}

}  // namespace etude
