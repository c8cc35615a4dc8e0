#pragma once

#include <string>
#include <vector>

#include "src/analysis/compare/trace_diff.h"
#include "src/report/text/table.h"

namespace etude {

// Keys of the tables, in order.
inline const std::vector<std::string> kDiffTables = {"summary", "ops", "modules", "nodes"};

std::vector<Table> DiffTables(const Trace& a, const Trace& b, const TraceDiff& diff);

}  // namespace etude
