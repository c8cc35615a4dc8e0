#pragma once

#include <string>
#include <vector>

#include "src/report/page/page.h"
#include "src/suite/results/score.h"

namespace etude::suite {

// Return tables with a row per task, and per run.
Table ScoreTable(const std::vector<Score>& scores);
Table RunTable(const std::vector<Score>& scores);
// Returns a table with a row per task trained to its target: its epochs and the reference's.
Table ConvergenceTable(const std::vector<Score>& scores);

// Makes the result page: scores, quality over time by task, runs, machines.
Page MakeSuitePage(const std::vector<Score>& scores, const std::vector<std::string>& folders);

}  // namespace etude::suite
