#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace etude::suite {

// Times or epochs to the target of runs of one task; of runs that missed it only the number.
struct RunFigures {
  std::vector<double> values;
  size_t missed = 0;
};

struct OlympicMean {
  double value = 0;
  size_t count = 0;  // of values that are in it
};

// MLPerf Training's rule: the mean without the least and the largest, a run that missed the target
// being the largest; of fewer than five runs none is dropped. nullopt if another one missed, or
// there is none.
std::optional<OlympicMean> OlympicMeanOf(RunFigures figures);

}  // namespace etude::suite
