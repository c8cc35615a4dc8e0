#pragma once

#include <cstdint>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"
#include "src/transform/runnable/runnable_rank.h"

namespace etude {

// Adds a launch on the host, of `cost` each, before the device work of a rank made of `trace`.
// Launches of a host thread follow each other, and those after a recorded wait of the thread for a
// device follow this wait, too. Returns the number of launches; kBadInput for ranks without known
// launches.
Result<uint64_t> AddLaunches(const Trace& trace, Nanos cost, RunnableRank& rank);

// Adds the recorded launches: each follows the previous one of any thread, and takes the time of
// the host since then, or since the end of a wait for a device that was later. The rest of the step
// follows the last one. Returns and fails as above.
Result<uint64_t> AddRecordedLaunches(const Trace& trace, RunnableRank& rank);

// Time of a host between operators that was removed.
struct RemovedGaps {
  uint64_t nodes = 0;
  Nanos time;
};
// Sets the own times of labels to 0: the time of a host between operators, such as of Python. Ranks
// with device work have none.
RemovedGaps RemoveGaps(RunnableRank& rank);

}  // namespace etude
