#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "src/base/units.h"

namespace etude {

// How times of equal work spread: of all of them the tenth, the middle and the ninetieth percent.
struct Spread {
  Nanos p10;
  Nanos median;
  Nanos p90;

  // The ninetieth percent above the tenth; 0 for times that are all the same.
  double share() const;
};

// `times` need not be sorted.
Spread SpreadOf(std::vector<Nanos> times);

// What a machine made of the same arithmetic, repeated.
struct MachineNoise {
  size_t repeats = 0;
  Spread wall;
  Spread cpu;
  std::optional<double> load;  // processes that ran or wanted to, over the last minute
  int cores = 0;               // that this process may use
};

}  // namespace etude
