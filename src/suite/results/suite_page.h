#pragma once

#include <string>
#include <vector>

#include "src/report/page/page.h"
#include "src/suite/results/score.h"

namespace etude::suite {

// A row for each task; and for each run.
Table ScoreTable(const std::vector<Score>& scores);
Table RunTable(const std::vector<Score>& scores);
// A row for each task that was trained to its target: its epochs beside the reference's.
Table ConvergenceTable(const std::vector<Score>& scores);

// The result page: scores, the course of quality of each task's runs, the runs, the machines.
Page MakeSuitePage(const std::vector<Score>& scores, const std::vector<std::string>& folders);

}  // namespace etude::suite
