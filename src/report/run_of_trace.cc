#include "src/report/run_of_trace.h"

#include "src/transform/recorded_waits.h"

namespace etude {

RankRun RunOfTrace(const Trace& trace, int64_t rank) {
  return MakeRankRun(trace, ReadCommLog(trace, rank), FindRecordedWaits(trace));
}

}  // namespace etude
