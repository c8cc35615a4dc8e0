#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/analysis/compare/paired_comparison.h"
#include "src/base/result.h"
#include "src/report/text/table.h"
#include "src/suite/results/score.h"

namespace etude::suite {

// Ranking of systems (machines, versions, settings) by their speed at the same tasks. Figures are
// ratios to the first system; above 1 is faster. Intervals are from the percentile bootstrap over
// runs, 95 % (docs/models/suite_ranking.md). Deterministic for the same runs and seed.
struct Ranking {
  struct TaskRow {
    std::string task;
    std::string system;
    std::optional<double> seconds;  // time to quality, or of a step
    // Unknown if a target was missed, or runs converged too fast.
    std::optional<Estimate> speed;
  };
  struct SystemRow {
    std::string system;
    std::optional<Estimate> speed;  // geometric mean over the tasks of all systems
    int64_t rank = 0;               // from 1; 0: not ranked
    int64_t best_rank = 0;          // ends of the rank's interval
    int64_t worst_rank = 0;
    std::optional<double> noise;  // maximum over the runs
  };

  std::vector<std::string> tasks;  // tasks of all systems, used for ranking
  std::vector<TaskRow> by_task;
  std::vector<SystemRow> systems;
  std::vector<std::string> notes;  // limitations of the figures
};

struct RankedSystem {
  std::string name;
  std::vector<Score> scores;
};

// Ranks the systems. kBadInput if no task was run by all systems in the same mode and scale, or a
// task was run on different data sets, to different targets, or with different batches in steps
// mode. Other differences in settings become notes.
Result<Ranking> RankSystems(const std::vector<RankedSystem>& systems, uint64_t seed);

Table SystemTable(const Ranking& ranking);
Table TaskTable(const Ranking& ranking);

}  // namespace etude::suite
