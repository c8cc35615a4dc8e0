#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/analysis/comm/comm_match.h"
#include "src/base/units.h"
#include "src/run/calls/comm_log.h"

namespace etude {

// Time of a job's collectives in two parts: skew, in which ranks wait for the last one to begin,
// and transfer, the rest.
struct CommSkew {
  // All collectives of one type and group on one rank.
  struct RankShare {
    int64_t rank = 0;
    std::string type;
    std::string group;
    uint64_t count = 0;
    uint64_t last = 0;  // number of them in which this rank was the last to begin
    Nanos skew;
    Nanos transfer;
  };
  struct Meeting {
    std::string call;       // "all_reduce #17 of group '2'"
    uint64_t node = 0;      // source id on the last rank to begin
    int64_t last_rank = 0;  // the last to begin; the first one of equals
    size_t ranks = 0;       // members with a trace
    std::optional<Bytes> bytes;
    Nanos skew;      // from the first rank's begin to the last one's
    Nanos transfer;  // from the last one's begin to the last end
  };

  std::vector<RankShare> ranks;   // by type, group and rank
  std::vector<Meeting> meetings;  // max skew first
  uint64_t untimed = 0;           // collectives that cannot be split: a member has no times,
  uint64_t unaligned = 0;         // its clock cannot be compared with the others',
  uint64_t alone = 0;             // or only one member has a trace
};

// Splits the times of collectives. `logs` are those of `match`. Times are compared by the clock of
// the first rank; differences below the spread of the offsets (ClockOffset) are not significant. If
// members have no trace, the last one may be among them: skew is then a lower bound. O(calls log
// calls).
CommSkew SplitSkew(std::span<const CommLog> logs, const CommMatch& match);

}  // namespace etude
