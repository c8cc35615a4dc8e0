#pragma once

#include <string>
#include <vector>

#include "src/analysis/comm/comm_match.h"
#include "src/analysis/comm/comm_skew.h"
#include "src/report/text/table.h"

namespace etude {

// Returns tables of a job's collectives: "skew" (by rank, type and group), "slowest" (single ones),
// "clocks".
std::vector<Table> CommTables(const CommSkew& skew, const CommMatch& match);
// Returns limitations of the figures, one line each.
std::vector<std::string> CommNotes(const CommSkew& skew, const CommMatch& match);

}  // namespace etude
