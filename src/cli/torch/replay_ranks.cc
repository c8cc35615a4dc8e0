#include "src/cli/torch/replay_ranks.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "src/cli/torch/rank_processes.h"

namespace etude {

Result<ExitCode> RunLocalRanks(const RanksOfJob& ranks, int64_t lead, std::chrono::seconds timeout,
                               const WorkOfRank& work) {
  ETUDE_ASSIGN_OR_RETURN(const MeetingPlace place, MeetingPlace::Open());
  return RunRanks(ranks.present, lead, [&](int64_t rank) -> Result<ExitCode> {
    RankGroup group({.rank = rank,
                     .size = ranks.size,
                     .present = ranks.present,
                     .lead = lead,
                     .local_rank = std::ranges::find(ranks.present, rank) - ranks.present.begin(),
                     .place = place,
                     .timeout = timeout});
    BeginSession();
    return work(group);
  });
}

Result<ExitCode> RunLaunchedRank(const Launch& launch, const RanksOfJob& ranks,
                                 const std::string& path, std::chrono::seconds timeout,
                                 const WorkOfRank& work) {
  if (launch.size != static_cast<int64_t>(ranks.present.size())) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{} started {} processes, expected {}: one per rank of {}",
                                 launch.launcher, launch.size, ranks.present.size(), path));
  }
  RankGroup group({.rank = ranks.present[static_cast<size_t>(launch.rank)],
                   .size = ranks.size,
                   .present = ranks.present,
                   .lead = ranks.present.front(),
                   .local_rank = launch.local_rank,
                   .place = {.host = launch.host,
                             .port = launch.port,
                             .store_is_there = launch.store_is_there,
                             .one_machine = launch.one_machine,
                             .interface = launch.interface,
                             .run = launch.run,
                             .each_ends_itself = true},
                   .timeout = timeout});
  ETUDE_ASSIGN_OR_RETURN(const ExitCode answer, work(group));
  ETUDE_RETURN_IF_ERROR(group.Leave());
  return answer;
}

Status ShareSummaries(RankGroup& group, ReplayReport& report) {
  static_assert(std::is_trivially_copyable_v<RankSummary>);
  const RankSummary own{.rank = group.rank(),
                        .operators = report.operators,
                        .operators_replayed = report.operators_replayed,
                        .complete = IsComplete(report.skipped),
                        .time_coverage = report.time_coverage,
                        .replay = report.replay};
  std::string bytes(sizeof own, '\0');
  std::memcpy(bytes.data(), &own, sizeof own);
  ETUDE_RETURN_IF_ERROR(group.Tell(bytes));
  for (const int64_t rank : group.present()) {
    ETUDE_ASSIGN_OR_RETURN(const std::string told, group.ToldBy(rank));
    RankSummary& row = report.ranks.emplace_back();
    std::memcpy(&row, told.data(), std::min(told.size(), sizeof row));
  }
  return {};
}

}  // namespace etude
