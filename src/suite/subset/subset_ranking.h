#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/suite/results/ranking.h"
#include "src/suite/subset/subset.h"

namespace etude::suite {

// Agreement of rankings of the same systems by all tasks and by subsets of them, as Kendall's
// tau-b. Intervals (95 %) are from the percentile bootstrap over systems, with the times of each
// system drawn from its runs and, in steps mode, their timed steps.
struct SubsetRanking {
  struct Row {
    std::string name;
    std::vector<const TaskFacts*> tasks;  // empty for a mean over subsets
    std::optional<Estimate> tau;  // nullopt if a task is not ranked, or all speeds are equal
    std::string why;              // reason without tau; ""
    std::optional<double> recalled_hours;
    std::optional<double> saved;  // share of the recalled hours of the suite
  };

  Ranking by_all;              // by all tasks that all systems ran
  std::vector<double> speeds;  // of the subset chosen here, relative to the first system; empty
                               // without tau
  std::vector<Row> rows;
  size_t size = 0;     // tasks of the subset chosen here, and of those compared with it
  size_t subsets = 0;  // number of compared subsets of this size
  bool every = false;  // whether these are all
  std::vector<std::string> notes;
};

// Ranks the systems. Runs in steps mode count by their median step, times the mean number of steps
// to the target if it is known, for as many samples as the characterization's batch. kBadInput as
// RankSystems, and for fewer than two systems.
Result<SubsetRanking> TestSubset(const Subset& subset, const CharacterizedTasks& characterization,
                                 const std::vector<RankedSystem>& systems, uint64_t seed);

}  // namespace etude::suite
