#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/units.h"
#include "src/run/calls/comm_log.h"

namespace etude {

// A call of one rank: indices of its log and of the call in it.
struct CallPlace {
  size_t log = 0;
  size_t call = 0;
};

// How the clock of a rank differs from that of the first rank.
struct ClockOffset {
  int64_t rank = 0;
  // To be subtracted from its times; nullopt if it cannot be told, for the reason given.
  std::optional<Nanos> offset;
  Nanos origin;           // what its times count from is so much later than with the first rank
  Nanos spread;           // half of the middle half of what single collectives say
  uint64_t meetings = 0;  // collectives that say something
  bool is_none = false;   // the rank's trace has no times
  std::string reason;     // why there is no offset

  // How far the clock is ahead; nullopt if it cannot be told.
  std::optional<Nanos> ahead() const { return offset ? std::optional(*offset + origin) : offset; }
};

// By log, how much later than the first one's what its times count from is; 0 for all unless all
// say it.
std::vector<Nanos> OriginsOf(std::span<const CommLog> logs);

// Whether a collective ends for all members at once: an all-reduce does, a broadcast need not.
bool EndsTogether(CollectiveType type);

// Whether the ranks are those of a simulated job: no clock is ahead of another.
bool HaveOneClock(std::span<const CommLog> logs);
// Whether they say that they were recorded by the clock of one machine.
bool AreOfOneMachine(std::span<const CommLog> logs);

// By log, of which the first one's is 0: the clocks compared by the ends of those `meetings`
// (collectives in which several took part) that end for all members together: the median of the
// differences. A rank that met none that is compared already is compared with those that come to
// be. Of a simulated job, and of ranks on one machine, none is ahead.
std::vector<ClockOffset> CompareClocks(std::span<const CommLog> logs,
                                       std::span<const std::vector<CallPlace>> meetings);

}  // namespace etude
