#include "src/suite/results/task_benchmarks.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "src/report/certificate/run_comparison_json.h"
#include "src/report/text/json_output.h"

namespace etude::suite {
namespace {

std::optional<double> CoverageOf(const ReplayFacts& replay) {
  if (replay.operators == 0) return std::nullopt;
  return static_cast<double>(replay.operators_replayed) / static_cast<double>(replay.operators);
}

// Returns the figures of a metric; nullptr if it is not available.
const PairedComparison* FiguresOf(const RunComparison& run, StepMetric metric) {
  const auto found = std::ranges::find(run.metrics, metric, &MetricComparison::metric);
  return found == run.metrics.end() || !found->figures ? nullptr : &*found->figures;
}

// Returns the task's median wall time of a step.
Cell StepCell(const RunComparison& run) {
  const PairedComparison* figures = FiguresOf(run, StepMetric::kWallTime);
  if (figures == nullptr || !figures->original) return {};
  return static_cast<int64_t>(figures->original->value);
}

// Returns "+1.2 % [-0.3 %, +2.5 %]".
Cell ErrorCell(const RunComparison& run, StepMetric metric) {
  const PairedComparison* figures = FiguresOf(run, metric);
  if (figures == nullptr || !figures->error) return {};
  return EstimateText(figures->error, PercentText);
}

// Returns "4 of 4 met" or "2 of 4 met, 1 missed".
std::string BarsText(const RunComparison& run) {
  const auto count = [&](BarVerdict verdict) {
    return std::ranges::count(run.metrics, std::optional(verdict), &MetricComparison::verdict);
  };
  const auto met = count(BarVerdict::kMet);
  const auto missed = count(BarVerdict::kMissed);
  const auto all = met + missed + count(BarVerdict::kUndetermined);
  return fmt::format("{} of {} met{}", met, all,
                     missed == 0 ? "" : fmt::format(", {} missed", missed));
}

}  // namespace

bool TaskBenchmark::met() const {
  const ReplayFacts& replay = fidelity.run.replay;
  return replay.operators > 0 && replay.operators == replay.operators_replayed &&
         fidelity.run.all_met();
}

Table FidelityTable(const std::vector<TaskBenchmark>& benchmarks) {
  Table table{.key = "benchmarks",
              .title = "Standalone benchmarks, compared with their tasks",
              .columns = {{"id", "task", Unit::kText},
                          {"operators", "operators", Unit::kCount},
                          {"coverage", "covered", Unit::kShare},
                          {"time_coverage", "of time", Unit::kShare},
                          {"step_ns", "step", Unit::kTime},
                          {"wall_time", "wall time, error [95 %]", Unit::kText},
                          {"cpu_time", "CPU time, error [95 %]", Unit::kText},
                          {"peak_memory", "peak memory, error [95 %]", Unit::kText},
                          {"bars", "bars", Unit::kText}}};
  for (const TaskBenchmark& benchmark : benchmarks) {
    const RunComparison& run = benchmark.fidelity.run;
    table.rows.push_back(
        {benchmark.task, run.replay.operators == 0 ? Cell() : Cell(run.replay.operators),
         ToCell(CoverageOf(run.replay)), ToCell(run.replay.time_coverage), StepCell(run),
         ErrorCell(run, StepMetric::kWallTime), ErrorCell(run, StepMetric::kCpuTime),
         ErrorCell(run, StepMetric::kPeakMemory), BarsText(run)});
  }
  return table;
}

nlohmann::ordered_json ToJson(const TaskBenchmark& benchmark) {
  const RunComparison& run = benchmark.fidelity.run;
  nlohmann::ordered_json json = {{"id", benchmark.task},
                                 {"recording", benchmark.recording},
                                 {"benchmark", benchmark.benchmark},
                                 {"certificate", benchmark.certificate},
                                 {"kept", benchmark.kept},
                                 {"met", benchmark.met()}};
  json["coverage"] = {{"ops", OrNull(CoverageOf(run.replay))},
                      {"time", OrNull(run.replay.time_coverage)}};
  json["pairs"] = run.pairs.size();
  json["metrics"] = nlohmann::ordered_json::array();
  for (const MetricComparison& metric : run.metrics) json["metrics"].push_back(ToJson(metric));
  return json;
}

}  // namespace etude::suite
