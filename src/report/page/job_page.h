#pragma once

#include <string>
#include <vector>

#include "src/report/certificate/replay_comparison.h"
#include "src/report/certificate/run_comparison.h"
#include "src/report/page/page.h"
#include "src/report/page/rank_figures.h"

namespace etude {

// The ranks of one job, with their replays as far as there are any.
struct JobFigures {
  std::string name;
  std::vector<RankFigures> ranks;
  std::vector<RankComparison> replays;
  std::vector<RunComparison> runs;  // of the original in turn with its replay
  std::vector<std::string> replay_notes;
};

// One page of all jobs, which need not have anything in common.
Page MakeJobPage(std::string title, std::vector<JobFigures> jobs);

}  // namespace etude
