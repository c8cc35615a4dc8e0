#include "src/cli/recorded_times.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/comm_match.h"
#include "src/analysis/graph_time.h"
#include "src/base/each_rank.h"
#include "src/report/graph_time_tables.h"
#include "src/transform/read_job.h"
#include "src/transform/recorded_waits.h"

namespace etude {
namespace {

struct ReadRecording {
  Trace trace;
  CommLog log;
  std::vector<RecordedWait> waits;
};

}  // namespace

Result<Inspected> SimulateRecordedTimes(const std::vector<std::string>& paths, int64_t jobs,
                                        const Console& console) {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> inputs,
                         FindRanks(paths, console.context(), TimedInput));
  ETUDE_ASSIGN_OR_RETURN(
      const std::vector<ReadRecording> read,
      ForEachRank<ReadRecording>(
          inputs.size(), jobs, console.context(),
          [&](size_t i, const RunContext& context) -> Result<ReadRecording> {
            ETUDE_ASSIGN_OR_RETURN(Trace trace,
                                   ReadRank(inputs[i], {.strict = console.strict()}, context));
            ReadRecording one;
            one.log = ReadCommLog(trace, inputs[i].rank.value_or(trace.info().rank.value_or(0)));
            one.waits = FindRecordedWaits(trace);
            one.trace = std::move(trace);
            return one;
          }));
  std::vector<CommLog> logs;
  std::vector<RecordedRank> ranks;
  std::set<int64_t> seen;
  for (size_t i = 0; i < read.size(); ++i) {
    if (!seen.insert(read[i].log.rank).second) {
      return BadInput(fmt::format("{}: found a second trace of rank {}, expected one of each",
                                  inputs[i].path, read[i].log.rank));
    }
    logs.push_back(read[i].log);
    ranks.push_back({.trace = &read[i].trace, .log = &read[i].log, .waits = read[i].waits});
  }
  const Result<GraphTime> time = FindGraphTime(ranks, MatchComms(logs));
  if (!time) return MakeError(time.error().code, paths.front() + ": " + time.error().message);
  return Inspected{.path = paths.front(),
                   .tables = GraphTimeTables(*time, ranks.size()),
                   .notes = GraphTimeNotes(*time)};
}

}  // namespace etude
