#pragma once

#include <string>
#include <vector>

#include "src/report/certificate/replay_comparison.h"
#include "src/report/certificate/run_comparison.h"
#include "src/report/page/page.h"
#include "src/report/page/rank_figures.h"
#include "src/report/text/table.h"

namespace etude {

// Ranks of one job, with their replays if there are any.
struct JobFigures {
  std::string name;
  std::vector<RankFigures> ranks;
  std::vector<RankComparison> replays;
  std::vector<RunComparison> runs;  // comparisons of the original with its replay
  std::vector<std::string> replay_notes;
  std::vector<Table> edited;  // edits, and recorded, simulated and measured steps
};

// Makes one page of several, possibly unrelated jobs.
Page MakeJobPage(std::string title, std::vector<JobFigures> jobs);

}  // namespace etude
