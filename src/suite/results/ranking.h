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

// Systems (machines, versions, settings) by how fast they are at the same tasks. Figures are ratios
// to the first system, above 1 is faster; intervals are those of the percentile bootstrap over
// runs, 95 % (docs/models/suite_ranking.md). Same runs and seed: the same result.
struct Ranking {
  struct TaskRow {
    std::string task;
    std::string system;
    std::optional<double> seconds;  // to quality, or of a step
    // Unknown where a target was missed, and beside runs that converged too fast.
    std::optional<Estimate> speed;
  };
  struct SystemRow {
    std::string system;
    std::optional<Estimate> speed;  // geometric mean over the tasks that all systems did
    int64_t rank = 0;               // from 1; 0: not ranked
    int64_t best_rank = 0;          // ends of the interval
    int64_t worst_rank = 0;
    std::optional<double> noise;  // of the noisiest run
  };

  std::vector<std::string> tasks;  // that all did, and by which they are ranked
  std::vector<TaskRow> by_task;
  std::vector<SystemRow> systems;
  std::vector<std::string> notes;  // what the figures leave out
};

struct RankedSystem {
  std::string name;
  std::vector<Score> scores;
};

// kBadInput if there is no task that all systems ran in the same mode and scale, or if they ran one
// on different data sets, to different targets, or timed its steps with different batches. What
// else differs in their settings is a note.
Result<Ranking> RankSystems(const std::vector<RankedSystem>& systems, uint64_t seed);

Table SystemTable(const Ranking& ranking);
Table TaskTable(const Ranking& ranking);

}  // namespace etude::suite
