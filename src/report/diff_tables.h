#pragma once

#include <string>
#include <vector>

#include "src/analysis/trace_diff.h"
#include "src/report/table.h"

namespace etude {

// Keys of the tables, in their order.
inline const std::vector<std::string> kDiffTables = {"summary", "ops", "modules", "nodes"};

std::vector<Table> DiffTables(const Trace& a, const Trace& b, const TraceDiff& diff);

}  // namespace etude
