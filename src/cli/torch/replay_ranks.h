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

// Default time without progress before a collective counts as hung.
inline constexpr std::chrono::seconds kUsualTimeout{60};

// The work of a rank, in the process that is that rank.
using WorkOfRank = std::function<Result<ExitCode>(RankGroup& group)>;

// Runs the ranks of a job, one process each, which this one forks; the answer is the lead's.
Result<ExitCode> RunLocalRanks(const RanksOfJob& ranks, int64_t lead, std::chrono::seconds timeout,
                               const WorkOfRank& work);

// Runs the rank that a launcher started this process as; the first leads. kUsage if it started
// another number of processes than `ranks` are, which are those of `path`.
Result<ExitCode> RunLaunchedRank(const Launch& launch, const RanksOfJob& ranks,
                                 const std::string& path, std::chrono::seconds timeout,
                                 const WorkOfRank& work);

// Tells the others how this rank fared, and puts into `report` how all did.
Status ShareSummaries(RankGroup& group, ReplayReport& report);

}  // namespace etude
