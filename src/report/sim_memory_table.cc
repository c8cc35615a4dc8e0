#include "src/report/sim_memory_table.h"

#include <algorithm>

namespace etude {

Table SimMemoryTable(std::vector<SimMemoryRow> rows) {
  Table table{.key = std::string(kSimMemoryTable),
              .title = "memory in use",
              .columns = {{"rank", "rank", Unit::kNumber},
                          {"ranks", "ranks", Unit::kCount},
                          {"peak_bytes", "peak", Unit::kBytes},
                          {"peak_size", "peak, no unit", Unit::kCount},
                          {"peak_time_ns", "at", Unit::kTime},
                          {"peak_name", "reached in", Unit::kText},
                          {"peak_node", "node", Unit::kNumber},
                          {"before", "before", Unit::kCount},
                          {"after", "after", Unit::kCount},
                          {"unknown", "no size", Unit::kCount}},
              .rows = {}};
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const SimMemoryRow& row) { return row.memory.peak; });
  for (const SimMemoryRow& row : rows) {
    const SimMemory& memory = row.memory;
    table.rows.push_back({row.rank, row.ranks, memory.in_bytes ? Cell(memory.peak) : Cell(),
                          memory.in_bytes ? Cell() : Cell(memory.peak), memory.at,
                          row.name.empty() ? Cell() : Cell(row.name),
                          row.node ? CountCell(*row.node) : Cell(), memory.before, memory.after,
                          CountCell(memory.unknown)});
  }
  return table;
}

}  // namespace etude
