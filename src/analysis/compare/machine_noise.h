#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "src/base/units.h"

namespace etude {

// Spread of the times of equal work: 10th, 50th and 90th percentile.
struct Spread {
  Nanos p10;
  Nanos median;
  Nanos p90;

  // Returns p90 / p10 - 1; 0 for equal times.
  double share() const;
};

// Returns the spread of `times`, in any order.
Spread SpreadOf(std::vector<Nanos> times);

// Measured times of repeated identical arithmetic on a machine.
struct MachineNoise {
  size_t repeats = 0;
  Spread wall;
  Spread cpu;
  std::optional<double> load;  // processes running or ready, over the last minute
  int cores = 0;               // usable by this process
};

}  // namespace etude
