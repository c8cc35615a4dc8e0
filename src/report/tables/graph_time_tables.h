#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/analysis/time/graph_time.h"
#include "src/report/text/table.h"

namespace etude {

// Keys of the tables, in their order.
inline const std::vector<std::string> kGraphTimeTables = {"recorded", "gaps"};

// A recorded job by its graph alone beside what was recorded, and where the difference arises.
std::vector<Table> GraphTimeTables(const GraphTime& time, size_t ranks);
// "206.053 ms of 208.252 ms (-1.1 %)".
std::string GraphTimeText(const GraphTime& time);
// What the figures leave out, a line each.
std::vector<std::string> GraphTimeNotes(const GraphTime& time);

}  // namespace etude
