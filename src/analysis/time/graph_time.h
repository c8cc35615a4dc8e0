#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/analysis/comm/comm_match.h"
#include "src/base/units.h"
#include "src/run/rank_run.h"

namespace etude {

// How long a recorded job takes by its graph alone: every node as long as recorded and as soon as
// what it waits for has ended.
struct GraphTime {
  // Along the longest chain, by what and where; most first. They add up to recorded − simulated.
  struct Gap {
    GapKind kind = GapKind::kHostGap;
    int64_t rank = 0;
    std::string lane;  // "thread 42", "device 0 stream 7"
    uint64_t count = 0;
    Nanos time;
  };

  Nanos recorded;  // from the first begin to the last end
  Nanos simulated;
  uint64_t nodes = 0;
  uint64_t untimed = 0;         // operators and work without times: not in it
  uint64_t contradictions = 0;  // dependencies that times or others deny: not in it
  uint64_t joint = 0;           // collectives and messages that ranks begin together
  uint64_t apart = 0;           // of which a member was done before another came: not in it
  uint64_t unaligned = 0;       // of ranks whose clocks cannot be compared: not in it
  std::vector<Gap> gaps;

  // Of the recorded time.
  double error() const {
    return recorded.count == 0 ? 0
                               : static_cast<double>((simulated - recorded).count) /
                                     static_cast<double>(recorded.count);
  }
};

// Threads and streams do their nodes one after the other, in the order of the recording. A
// collective begins when the last rank has come and then takes as long as for its quickest rank, a
// message likewise; `match` is of the ranks' logs. Ranks whose clocks cannot be compared run by
// themselves. nullopt if no node has a start and a duration. O(n log n).
std::optional<GraphTime> FindGraphTime(std::span<const RankRun> ranks, const CommMatch& match);
// The same of one rank by itself.
std::optional<GraphTime> FindGraphTime(const RankRun& run);
// The same of a job; matches its communications. nullopt also if a rank comes twice.
std::optional<GraphTime> FindGraphTime(std::span<const RankRun> ranks);

}  // namespace etude
