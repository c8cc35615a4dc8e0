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

// How the communications of the ranks of a job fit together.
struct CommMatch {
  uint64_t collectives = 0;       // in which all members that have a trace, several, took part
  uint64_t point_to_point = 0;    // sends with their receives
  uint64_t unknown_partners = 0;  // sends and receives of which no trace says with whom
  // Collectives of which nothing says in which group, while it is known of others, and that could
  // be of none of these.
  uint64_t unknown_groups = 0;
  // Collectives of which nothing says in which group, taken for those of all ranks, though the job
  // has smaller groups, too.
  uint64_t ungrouped = 0;
  // Where ranks were recorded in different steps: calls of those that not all have, and before the
  // first mark. They are left out.
  uint64_t other_steps = 0;
  // "rank 0: 3 to 6, rank 1: 4 to 7": two of these ranks; "" if there are none.
  std::string different_steps;
  uint64_t unmatched = 0;  // calls of single ranks that found no partners
  // Why the first of these would wait for ever: "rank 3 waits in all_reduce #17 of group '2'; rank
  // 5 is in broadcast #3 of group '1'"; "" if none.
  std::string first_mismatch;
  std::vector<int64_t> missing_ranks;  // members of groups or of the world without a trace
  std::map<int64_t, std::vector<int64_t>> world_sizes;  // ranks by the size they state
  // The ranks are those of a simulated job: no clock is ahead of another.
  bool one_clock = false;
  bool one_machine = false;         // the ranks were recorded by the clock of one machine
  std::vector<ClockOffset> clocks;  // by log; the first one's is 0
  // The calls of each matched collective, one per member that has a trace, be it only one.
  std::vector<std::vector<CallPlace>> meetings;
  std::vector<std::pair<CallPlace, CallPlace>> messages;  // sends with their receives
};

// Matches collectives group by group in the order of issue (type, and size where it must be equal),
// sends with receives by peer and tag, and these only if their sizes are equal. Groups are the same
// if name and members are. A collective without a group, while others have one, is one that its
// rank would lack otherwise, unless all ranks have the same ones without a group. Clocks are
// compared by the ends of collectives that end for all members together (all-reduce, all-gather,
// reduce-scatter, all-to-all, barrier): the median of the differences. Those of a simulated job are
// one. Where all traces have marks of steps, and not of the same ones, the calls of the steps that
// all have are matched. O(calls log calls) where all have a group.
CommMatch MatchComms(std::span<const CommLog> logs);

}  // namespace etude
