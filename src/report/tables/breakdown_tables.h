#pragma once

#include <string>
#include <vector>

#include "src/analysis/time/breakdown.h"
#include "src/report/text/table.h"

namespace etude {

// Keys of the tables, in their order.
inline const std::vector<std::string> kBreakdownTables = {"steps", "streams"};

std::vector<Table> BreakdownTables(const Breakdown& breakdown);
// What the figures leave out, a line each.
std::vector<std::string> BreakdownNotes(const Breakdown& breakdown);

}  // namespace etude
