#pragma once

#include <string>
#include <vector>

#include "src/analysis/time/critical_path.h"
#include "src/report/text/table.h"
#include "src/trace/trace.h"

namespace etude {

// Keys of the tables, in order.
inline const std::vector<std::string> kCriticalPathTables = {"summary", "parts",   "ops",
                                                             "lanes",   "modules", "path"};

std::vector<Table> CriticalPathTables(const Trace& trace, const CriticalPath& path);
// Returns limitations of the figures, one line each.
std::vector<std::string> CriticalPathNotes(const CriticalPath& path);

}  // namespace etude
