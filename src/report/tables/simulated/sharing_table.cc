#include "src/report/tables/simulated/sharing_table.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/trace/job/rank_set.h"

namespace etude {

Table SharingTable(const SharingStudy& study, std::span<const std::string> names,
                   std::span<const PlacedJob> placed) {
  constexpr size_t kMostParts = 4;
  Table table{.key = std::string(kSharingTable),
              .title = study.jobs.size() == 1 ? "steps of the job on these NPUs"
                                              : "steps of the jobs, alone and beside the others",
              .columns = {{"job", "job", Unit::kText},
                          {"ranks", "ranks", Unit::kCount},
                          {"npus", "NPUs", Unit::kText},
                          {"steps", "steps", Unit::kCount},
                          {"alone_ns", "step alone", Unit::kTime},
                          {"shared_ns", "step", Unit::kTime},
                          {"slowdown_share", "slow-down", Unit::kChange}},
              .rows = {}};
  for (size_t i = 0; i < study.jobs.size(); ++i) {
    const SharingJob& job = study.jobs[i];
    std::vector<int64_t> npus = placed[i].npus;
    std::ranges::sort(npus);
    table.rows.push_back(
        {names[i], static_cast<int64_t>(npus.size()), RankListText(npus, kMostParts), job.steps,
         job.alone, job.shared,
         static_cast<double>(job.shared - job.alone) / static_cast<double>(job.alone)});
  }
  return table;
}

}  // namespace etude
