#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/analysis/comm/clock_offsets.h"
#include "src/run/calls/comm_log.h"

namespace etude {

// Result of matching the communications of a job's ranks.
struct CommMatch {
  uint64_t collectives = 0;       // with all members that have a trace, at least two
  uint64_t point_to_point = 0;    // sends with their receives
  uint64_t unknown_partners = 0;  // sends and receives whose partner is not recorded
  // Collectives without a recorded group, while others have one, that fit none of the known groups.
  uint64_t unknown_groups = 0;
  // Collectives without a recorded group, counted as those of all ranks although the job also has
  // smaller groups.
  uint64_t ungrouped = 0;
  // If ranks were recorded in different steps: calls in steps that not all have, and calls before
  // the first mark. They are ignored.
  uint64_t other_steps = 0;
  // "rank 0: 3 to 6, rank 1: 4 to 7": two such ranks; "" if there are none.
  std::string different_steps;
  uint64_t unmatched = 0;  // calls of single ranks without partners
  // Reason why the first of these would deadlock: "rank 3 waits in all_reduce #17 of group '2';
  // rank 5 is in broadcast #3 of group '1'"; "" if none.
  std::string first_mismatch;
  std::vector<int64_t> missing_ranks;  // members of groups or of the world without a trace
  std::map<int64_t, std::vector<int64_t>> world_sizes;  // ranks by their stated world size
  // True if the ranks are those of a simulated job, with one clock.
  bool one_clock = false;
  bool one_machine = false;         // the ranks were recorded by the clock of one machine
  std::vector<ClockOffset> clocks;  // by log; the first one's is 0
  // Calls of each matched collective, one per member with a trace, possibly only one.
  std::vector<std::vector<CallPlace>> meetings;
  std::vector<std::pair<CallPlace, CallPlace>> messages;  // sends with their receives
};

// Matches collectives group by group in order of issue (type, and size if it must be equal), and
// sends with receives by peer, tag and size. Groups are equal if their names and members are. A
// collective without a group, while others have one, counts as a call that its rank would otherwise
// lack, unless all ranks have the same collectives without a group. Clocks are compared by the ends
// of collectives that end for all members together (all-reduce, all-gather, reduce-scatter,
// all-to-all, barrier): the median of the differences. A simulated job has one clock. If all traces
// have step marks, but of different steps, only calls of the common steps are matched. O(calls log
// calls) if all have a group.
CommMatch MatchComms(std::span<const CommLog> logs);

}  // namespace etude
