#include "src/report/run_of_trace.h"

#include "src/transform/recorded_waits.h"

namespace etude {

RankRun RunOfTrace(const Trace& trace, int64_t rank) {
  return RunOfTrace(trace, rank, FindRecordedWaits(trace));
}

RankRun RunOfTrace(const Trace& trace, int64_t rank, std::span<const RecordedWait> waits) {
  return MakeRankRun(trace, ReadCommLog(trace, rank), waits);
}

}  // namespace etude
