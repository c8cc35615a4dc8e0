#pragma once

#include <string>
#include <vector>

#include "src/analysis/time/breakdown.h"
#include "src/report/text/table.h"

namespace etude {

// Keys of the tables, in order.
inline const std::vector<std::string> kBreakdownTables = {"steps", "streams"};

std::vector<Table> BreakdownTables(const Breakdown& breakdown);
// Returns limitations of the figures, one line each.
std::vector<std::string> BreakdownNotes(const Breakdown& breakdown);

}  // namespace etude
