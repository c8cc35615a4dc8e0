#include "src/report/recording_cost.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "src/analysis/time/time_summary.h"
#include "src/base/container/run_cache.h"
#include "src/formats/job/job_json.h"
#include "src/report/text/format.h"
#include "src/run/activity.h"

namespace etude {

RecordingCost FindRecordingCost(const Trace& trace, const std::string& path,
                                std::optional<int64_t> rank, const RunContext& context) {
  constexpr size_t kFewest = 3;
  RecordingCost cost;
  std::vector<Nanos> recorded;
  for (const StepWindow& step : FindSteps(trace)) recorded.push_back(step.window.length());
  cost.steps = recorded.size();
  cost.recorded = Median(std::move(recorded));
  const auto file = std::filesystem::path(path).parent_path() / kJobFile;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return cost;
  // Errors in job.json are reported by the commands that need it.
  const auto job = MadeOnce<JobFile>(
      context.cache, "job.json at " + file.string(),
      [&] { return ReadJobFile(file.string(), context.Unwarned()); },
      [&](const JobFile&) { return std::filesystem::file_size(file, error); });
  if (!job) return cost;
  const std::map<int64_t, JobRank>& ranks = (*job)->ranks;
  if ((*job)->usable_cores && !ranks.empty()) {
    cost.core_share = std::min(
        1.0, static_cast<double>(*(*job)->usable_cores) / static_cast<double>(ranks.size()));
  }
  const auto known = ranks.find(rank.value_or(trace.info().rank.value_or(0)));
  if (known == ranks.end()) return cost;
  std::vector<Nanos> program;
  for (const StepTime& step : known->second.ComparableSteps()) program.push_back(step.wall);
  cost.program_steps = program.size();
  if (program.size() >= kFewest) cost.program = Median(std::move(program));
  return cost;
}

std::string RecordingCostNote(const RecordingCost& cost) {
  // Ratios above this are not noise.
  constexpr double kWorthSaying = 1.25;
  if (!cost.recorded || !cost.program || cost.program->count <= 0) return "";
  const double factor =
      static_cast<double>(cost.recorded->count) / static_cast<double>(cost.program->count);
  if (factor < kWorthSaying) return "";
  return fmt::format(
      "the recorded step took {:.1f} times as long as an unrecorded one ({}; {}, the median of {} "
      "in job.json): times include the recording overhead, which is largest for small operators",
      factor, FormatTime(*cost.recorded), FormatTime(*cost.program), cost.program_steps);
}

}  // namespace etude
