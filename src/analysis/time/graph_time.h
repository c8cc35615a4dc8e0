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

// Time of a recorded job by its graph alone: every node takes its recorded time and begins as soon
// as its predecessors have ended.
struct GraphTime {
  // Gaps along the longest chain, by kind and lane; max first. They sum to recorded − simulated.
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
  uint64_t untimed = 0;         // operators and work without times: excluded
  uint64_t contradictions = 0;  // dependencies contradicted by times or others: excluded
  uint64_t joint = 0;           // collectives and messages that ranks begin together
  uint64_t apart = 0;           // those in which a member was done before another came: excluded
  uint64_t unaligned = 0;       // those of ranks whose clocks cannot be compared: excluded
  std::vector<Gap> gaps;

  // Returns the error relative to the recorded time.
  double error() const {
    return recorded.count == 0 ? 0
                               : static_cast<double>((simulated - recorded).count) /
                                     static_cast<double>(recorded.count);
  }
};

// Simulates the graph of a job. Threads and streams run their nodes in recorded order. A collective
// begins when the last rank has joined and then takes as long as for its quickest rank; so does a
// message. `match` belongs to the ranks' logs. Ranks whose clocks cannot be compared run
// independently. nullopt if no node has a start and a duration. O(n log n).
std::optional<GraphTime> FindGraphTime(std::span<const RankRun> ranks, const CommMatch& match);
// Simulates one rank alone.
std::optional<GraphTime> FindGraphTime(const RankRun& run);
// Simulates a job after matching its communications. nullopt also for duplicate ranks.
std::optional<GraphTime> FindGraphTime(std::span<const RankRun> ranks);

}  // namespace etude
