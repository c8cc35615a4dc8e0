#include "src/jobs/recorded_times.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "src/analysis/time/graph_time.h"
#include "src/base/each_rank.h"
#include "src/jobs/sim_job.h"
#include "src/report/tables/graph_time_tables.h"
#include "src/run/rank_run.h"
#include "src/transform/read_job.h"

namespace etude {

Result<Inspected> SimulateRecordedTimes(const std::vector<std::string>& paths, int64_t jobs,
                                        bool strict, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOfPrefixes(paths));
  ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> inputs,
                         FindRanks(files, context, TimedInput));
  ETUDE_ASSIGN_OR_RETURN(
      const std::vector<RankRun> ranks,
      ForEachRank<RankRun>(
          inputs.size(), jobs, context, [&](size_t i, const RunContext& own) -> Result<RankRun> {
            ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadRank(inputs[i], {.strict = strict}, own));
            return MakeRankRun(trace, inputs[i].rank.value_or(trace.info().rank.value_or(0)));
          }));
  std::set<int64_t> seen;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!seen.insert(ranks[i].log.rank).second) {
      return BadInput(fmt::format("{}: found a second trace of rank {}, expected one of each",
                                  inputs[i].path, ranks[i].log.rank));
    }
  }
  const std::optional<GraphTime> time = FindGraphTime(ranks);
  if (!time) {
    return BadInput(paths.front() +
                    ": found no operator or device work with a start and a duration, expected a "
                    "recorded job. For host traces, add times from a profile with `etude link`. "
                    "For generated traces, add durations with `etude generate --device NAME` and "
                    "times with `etude simulate --network … -o FOLDER`");
  }
  return Inspected{.path = paths.front(),
                   .tables = GraphTimeTables(*time, ranks.size()),
                   .notes = GraphTimeNotes(*time)};
}

}  // namespace etude
