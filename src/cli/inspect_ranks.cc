#include "src/cli/inspect_ranks.h"

#include <utility>

#include "src/base/each_rank.h"

namespace etude {

void RankInspection::Declare(Options& options, std::vector<std::string> tables,
                             RankInput (*choose)(const CaptureRank&)) {
  options.Positionals("paths", &paths_,
                      "traces in any format, capture folders (all their ranks), or - for stdin");
  options.Value("--jobs", &jobs_, "N", "traces at a time (default: as many as cores)",
                {.least = 0});
  output_.Declare(options, std::move(tables));
  choose_ = choose;
}

Result<ExitCode> RankInspection::Run(std::string_view format, const Console& console,
                                     const Inspect& inspect) const {
  ETUDE_RETURN_IF_ERROR(output_.Check());
  ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> inputs,
                         FindRanks(paths_, console.context(), choose_));
  const ReadOptions read{.strict = console.strict()};
  const auto inspect_one = [&](size_t i, const RunContext& context) -> Result<Inspected> {
    ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadRank(inputs[i], read, context));
    ETUDE_ASSIGN_OR_RETURN(Inspected found, inspect(trace, inputs[i], context));
    found.rank = inputs[i].rank ? inputs[i].rank : trace.info().rank;
    found.path = inputs[i].path;
    found.health = JudgeTrace(trace);
    return found;
  };
  ETUDE_ASSIGN_OR_RETURN(
      const std::vector<Inspected> found,
      ForEachRank<Inspected>(inputs.size(), jobs_, console.context(), inspect_one));
  output_.Print(format, found, console);
  return ExitCode::kOk;
}

}  // namespace etude
