#pragma once

#include <cstdint>
#include <span>

#include "src/analysis/rank_run.h"
#include "src/trace/recorded_wait.h"
#include "src/trace/trace.h"

namespace etude {

// The recorded run of `rank` with what its trace says of waiting: what verdicts and `etude simulate
// --times recorded` are made of.
RankRun RunOfTrace(const Trace& trace, int64_t rank);
// The same where `waits` were found before (FindRecordedWaits).
RankRun RunOfTrace(const Trace& trace, int64_t rank, std::span<const RecordedWait> waits);

}  // namespace etude
