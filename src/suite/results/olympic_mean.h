#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace etude::suite {

// Times or epochs to the target of a task's runs; runs that missed it are only counted.
struct RunFigures {
  std::vector<double> values;
  size_t missed = 0;
};

struct OlympicMean {
  double value = 0;
  size_t count = 0;  // values included in the mean
};

// Returns the mean by MLPerf Training's rule: without minimum and maximum, where a run that missed
// the target is the maximum. Fewer than five runs are all included. nullopt if a further run
// missed, or there is none.
std::optional<OlympicMean> OlympicMeanOf(RunFigures figures);

}  // namespace etude::suite
