#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/units.h"
#include "src/replay/replay_report.h"

namespace etude {

// Replay of one kind of recorded steps in a job's mix.
struct ReplayedKind {
  int64_t step = 0;               // number of the replayed step
  int64_t steps = 0;              // recorded steps of this kind
  std::optional<Nanos> recorded;  // total time of these steps
  double weight = 0;  // number of the program's steps; if 0 for all kinds, `steps` is used
  ReplayReport report;
};

// Combines the reports of at least one kind. Times and page faults are means weighted by steps,
// counts are sums over all steps, and shares refer to all steps.
ReplayReport CombineKinds(std::vector<ReplayedKind> kinds);

}  // namespace etude
