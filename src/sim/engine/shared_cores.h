#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/sim/engine/sim_input.h"
#include "src/sim/engine/sim_timeline.h"

namespace etude {

// Progress of work that shares the cores of one host: computations of all ranks, and their parts of
// collectives. Each part demands a number of cores. If all parts demand more than there are, they
// share them by max-min fairness: none has less than another unless it demands less. Plans events
// of kind kCores. Not thread-safe.
class SharedCores {
 public:
  struct Work {
    bool is_collective = false;
    RankClassId rank_class;  // of a computation
    SimIndex subject = 0;    // node or collective
  };

  // `cores`: of the host; nullopt: as many as demanded.
  SharedCores(std::optional<double> cores, SimTimeline& timeline)
      : cores_(cores), timeline_(timeline) {}

  // Begins work that takes `nanos` alone, and keeps `demand` cores busy in each of `parts` ranks.
  void Begin(const Work& work, int64_t nanos, double demand, int64_t parts = 1);
  // Handles the event `plan`. Returns the work that has ended, in order of begin.
  std::vector<Work> Due(SimIndex plan);

 private:
  struct Running {
    Work work;
    double left = 0;  // ns, alone
    double demand = 0;
    int64_t parts = 1;
    double rate = 1;  // progress per ns
  };

  void Advance();
  void Share();
  void Plan();

  std::optional<double> cores_;
  SimTimeline& timeline_;
  std::vector<Running> running_;  // by begin
  int64_t since_ = 0;             // `left` is right at this time
  SimIndex plan_ = 0;             // number of the last planned event; others are void
};

}  // namespace etude
