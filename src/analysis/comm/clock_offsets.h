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

// Place of a call: index of its rank's log and of the call in it.
struct CallPlace {
  size_t log = 0;
  size_t call = 0;
};

// Offset of a rank's clock relative to the first rank's.
struct ClockOffset {
  int64_t rank = 0;
  // To be subtracted from the rank's times; nullopt if unknown, see `reason`.
  std::optional<Nanos> offset;
  Nanos origin;           // origin of its times relative to that of the first rank's
  Nanos spread;           // half of the interquartile range over single collectives
  uint64_t meetings = 0;  // number of usable collectives
  bool is_none = false;   // the rank's trace has no times
  std::string reason;     // reason for a missing offset

  // Returns how far the clock is ahead; nullopt if unknown.
  std::optional<Nanos> ahead() const { return offset ? std::optional(*offset + origin) : offset; }
};

// Returns, by log, the origin of its times relative to the first one's; 0 for all unless all state
// it.
std::vector<Nanos> OriginsOf(std::span<const CommLog> logs);

// Returns true if a collective ends for all members at once: an all-reduce does, a broadcast need
// not.
bool EndsTogether(CollectiveType type);

// Returns true if the ranks are those of a simulated job, with one clock.
bool HaveOneClock(std::span<const CommLog> logs);
// Returns true if all state that they were recorded by the clock of one machine.
bool AreOfOneMachine(std::span<const CommLog> logs);

// Returns the clock offsets by log; the first one's is 0. Compares clocks by the ends of `meetings`
// (collectives in which several ranks took part) that end for all members together: the offset is
// the median of the differences. A rank that shares no collective with a compared rank is compared
// with ranks compared later. Offsets are 0 for a simulated job and for ranks on one machine.
std::vector<ClockOffset> CompareClocks(std::span<const CommLog> logs,
                                       std::span<const std::vector<CallPlace>> meetings);

}  // namespace etude
