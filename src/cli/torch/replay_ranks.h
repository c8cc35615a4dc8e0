#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "src/base/exit_code.h"
#include "src/base/result.h"
#include "src/cli/app/launcher.h"
#include "src/cli/torch/replay_source.h"
#include "src/replay/replay_report.h"
#include "src/torch/group/rank_group.h"

namespace etude {

// Default time without progress after which a collective counts as hung.
inline constexpr std::chrono::seconds kUsualTimeout{60};

// Work of a rank, in its own process.
using WorkOfRank = std::function<Result<ExitCode>(RankGroup& group)>;

// Runs the ranks of a job in forked processes, one each; returns the lead's answer.
Result<ExitCode> RunLocalRanks(const RanksOfJob& ranks, int64_t lead, std::chrono::seconds timeout,
                               const WorkOfRank& work);

// Runs the rank for which a launcher started this process; the first rank leads. kUsage if the
// number of processes differs from `ranks`, the ranks of `path`.
Result<ExitCode> RunLaunchedRank(const Launch& launch, const RanksOfJob& ranks,
                                 const std::string& path, std::chrono::seconds timeout,
                                 const WorkOfRank& work);

// Exchanges this rank's summary with the others, and adds all summaries to `report`.
Status ShareSummaries(RankGroup& group, ReplayReport& report);

}  // namespace etude
