#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/analysis/time/graph_time.h"
#include "src/report/text/table.h"

namespace etude {

// Keys of the tables, in order.
inline const std::vector<std::string> kGraphTimeTables = {"recorded", "gaps"};

// Returns tables that compare a job's time by its graph with the recorded time, and locate the
// difference.
std::vector<Table> GraphTimeTables(const GraphTime& time, size_t ranks);
// Returns "206.053 ms of 208.252 ms (-1.1 %)".
std::string GraphTimeText(const GraphTime& time);
// Returns limitations of the figures, one line each.
std::vector<std::string> GraphTimeNotes(const GraphTime& time);

}  // namespace etude
