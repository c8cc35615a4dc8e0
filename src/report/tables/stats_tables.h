#pragma once

#include <string>
#include <vector>

#include "src/analysis/view/trace_stats.h"
#include "src/report/text/table.h"

namespace etude {

// Keys of the tables, in order.
inline const std::vector<std::string> kStatsTables = {"ops",   "kinds",         "modules",
                                                      "lanes", "communication", "copies"};

std::vector<Table> StatsTables(const TraceStats& stats);

}  // namespace etude
