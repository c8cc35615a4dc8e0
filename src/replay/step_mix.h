#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/units.h"
#include "src/replay/replay_report.h"

namespace etude {

// The replay of one kind of recorded steps, of which a job's steps are a mix.
struct ReplayedKind {
  int64_t step = 0;               // the number of the one that was replayed
  int64_t steps = 0;              // how many recorded steps it stands for
  std::optional<Nanos> recorded;  // their time
  double weight = 0;              // how many of the program's steps; 0 of all kinds: `steps`
  ReplayReport report;
};

// One report for all kinds, at least one: times and page faults are means weighted by steps, counts
// are sums over all steps, shares are of all.
ReplayReport CombineKinds(std::vector<ReplayedKind> kinds);

}  // namespace etude
