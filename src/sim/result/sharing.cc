#include "src/sim/result/sharing.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/base/ceil_div.h"

namespace etude {
namespace {

// Returns the end of the job's last rank; 0 if it is stuck.
int64_t EndOf(const PlacedJob& job, const SimResult& result) {
  int64_t end = 0;
  for (const int64_t npu : job.npus) {
    const SimRankResult& rank = result.OfRank(npu);
    if (!rank.finished) return 0;
    end = std::max(end, rank.end);
  }
  return end;
}

Result<SimResult> Run(const SimMachine& machine, const SimWorkload& workload,
                      const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(SimResult result,
                         Simulate(machine, workload, {.name = {}, .context = &context}));
  if (result.stopped) return MakeError(ErrorCode::kInterrupted, "interrupted");
  return result;
}

Result<int64_t> EndAlone(const SimMachine& machine, const PlacedJob& job, const std::string& name,
                         const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const SimWorkload workload, PlaceJobs(std::span(&job, 1), machine.npus()));
  Result<SimResult> result = Run(machine, workload, context);
  if (!result) return MakeError(result.error().code, name + ": " + result.error().message);
  const int64_t end = EndOf(job, *result);
  if (end == 0) {
    return BadInput(
        fmt::format("{}: found {}, expected a job that ends; `etude simulate {}` tells more", name,
                    result->time == 0 ? "no work" : "ranks that wait forever", name));
  }
  return end;
}

}  // namespace

Result<SharingStudy> StudySharing(const SimMachine& machine, std::vector<PlacedJob> jobs,
                                  std::span<const std::string> names, const RunContext& context) {
  std::vector<int64_t> alone;
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].steps = 1;
    ETUDE_ASSIGN_OR_RETURN(alone.emplace_back(), EndAlone(machine, jobs[i], names[i], context));
  }
  const int64_t longest = std::ranges::max(alone);
  SharingStudy study;
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].steps = std::min(CeilDiv(longest, alone[i]), kMostSharingSteps);
    if (jobs[i].steps == 1) continue;
    ETUDE_ASSIGN_OR_RETURN(alone[i], EndAlone(machine, jobs[i], names[i], context));
  }
  ETUDE_ASSIGN_OR_RETURN(study.workload, PlaceJobs(jobs, machine.npus()));
  ETUDE_ASSIGN_OR_RETURN(study.result, Run(machine, study.workload, context));
  for (size_t i = 0; i < jobs.size(); ++i) {
    const int64_t steps = jobs[i].steps;
    const int64_t shared = EndOf(jobs[i], study.result);
    study.jobs.push_back({.steps = steps, .alone = alone[i] / steps, .shared = shared / steps});
  }
  return study;
}

}  // namespace etude
