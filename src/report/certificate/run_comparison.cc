#include "src/report/certificate/run_comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/report/text/format.h"

namespace etude {
namespace {

using enum StepMetric;
constexpr double kTimeBar = 0.05;
constexpr double kFaultBar = 0.15;
constexpr double kMemoryBar = 0.10;

constexpr std::array<StepMetricInfo, kStepMetricCount> kMetrics = {{
    {kCpuTime, "cpu_time", "CPU time", Unit::kTime, kTimeBar},
    {kWallTime, "wall_time", "wall time", Unit::kTime, kTimeBar},
    {kCpuTimeWithoutGaps, "cpu_time_without_gaps", "CPU time, no gaps", Unit::kTime, std::nullopt},
    {kWallTimeWithoutGaps, "wall_time_without_gaps", "wall time, no gaps", Unit::kTime,
     std::nullopt},
    {kPageFaults, "page_faults", "page faults", Unit::kCount, kFaultBar},
    {kPeakMemory, "peak_memory", "peak memory, growth", Unit::kBytes, kMemoryBar},
    {kAverageMemory, "average_memory", "average memory, growth", Unit::kBytes, std::nullopt},
    {kPeakResident, "peak_resident", "peak memory, whole", Unit::kBytes, std::nullopt},
    {kAverageResident, "average_resident", "average memory, whole", Unit::kBytes, std::nullopt},
    {kVoluntarySwitches, "voluntary_switches", "voluntary switches", Unit::kCount, std::nullopt},
    {kInvoluntarySwitches, "involuntary_switches", "involuntary switches", Unit::kCount,
     std::nullopt},
    {kInstructions, "instructions", "instructions", Unit::kCount, std::nullopt},
    {kCycles, "cycles", "cycles", Unit::kCount, std::nullopt},
    {kCacheMisses, "cache_misses", "cache misses", Unit::kCount, std::nullopt},
    {kBranchMisses, "branch_misses", "branch misses", Unit::kCount, std::nullopt},
    {kFlopRate, "gflop_per_s", "GFLOP/s by shapes", Unit::kNumber, std::nullopt},
    {kByteRate, "gbyte_per_s", "GB/s by shapes", Unit::kNumber, std::nullopt},
    {kGpuEnergy, "gpu_energy", "GPU energy, J", Unit::kNumber, std::nullopt},
    {kGpuPower, "gpu_power", "GPU power, W", Unit::kNumber, std::nullopt},
    {kGpuUtilisation, "gpu_utilisation", "GPU busy, share", Unit::kNumber, std::nullopt},
    {kGpuMemoryUtilisation, "gpu_memory_utilisation", "GPU memory busy, share", Unit::kNumber,
     std::nullopt},
    {kGpuMemory, "gpu_memory", "GPU memory in use, both sides", Unit::kBytes, std::nullopt},
}};

// Returns the scale of a unit on pages: milliseconds, MiB, plain counts.
std::pair<std::string, double> Scale(Unit unit) {
  if (unit == Unit::kTime) return {"ms", 1e-6};
  if (unit == Unit::kBytes) return {"MiB", 1.0 / (1 << 20)};
  return {"", 1};
}

}  // namespace

std::span<const StepMetricInfo, kStepMetricCount> StepMetrics() { return kMetrics; }
const StepMetricInfo& InfoOf(StepMetric metric) { return kMetrics[static_cast<size_t>(metric)]; }

StepBars DefaultBars() {
  StepBars bars;
  for (const StepMetricInfo& info : kMetrics) bars[static_cast<size_t>(info.metric)] = info.bar;
  return bars;
}

bool AllMet(std::span<const MetricComparison> metrics) {
  return std::ranges::all_of(metrics, [](const MetricComparison& metric) {
    return !metric.verdict || *metric.verdict == BarVerdict::kMet;
  });
}

std::vector<std::vector<FigurePair>> PairsByStart(const RunComparison& run, StepMetric metric) {
  std::vector<std::vector<FigurePair>> starts(static_cast<size_t>(run.starts));
  for (const StepPair& pair : run.pairs) {
    const auto &original = pair.original[metric], &replay = pair.replay[metric];
    if (original && replay) starts.at(pair.start).push_back({*original, *replay});
  }
  return starts;
}

namespace {

// Estimates the number of pairs that decides on which side of the bar the error lies, assuming the
// current error and an interval that shrinks with the square root of the number.
std::optional<int64_t> PairsToDecide(const PairedComparison& figures, double bar) {
  if (figures.pairs < kLeastPairs) return static_cast<int64_t>(kLeastPairs);
  if (!figures.error || !std::isfinite(figures.error->high)) return std::nullopt;
  const double value = figures.error->value;
  const double edge = value < 0 ? -bar : bar;
  // Half of the interval across the edge.
  const double reach = edge > value ? figures.error->high - value : value - figures.error->low;
  const double half = std::max(reach, (figures.error->high - figures.error->low) / 2);
  const double distance = std::abs(edge - value);
  if (distance <= 0) return std::nullopt;
  const double factor = std::max(1.0, half / distance);
  const double pairs = static_cast<double>(figures.pairs) * factor * factor;
  if (!(pairs < static_cast<double>(kPairsMost))) return std::nullopt;
  return static_cast<int64_t>(std::ceil(pairs)) + 1;
}

std::string DurationText(double seconds) {
  return seconds < 90 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

// Describes how to decide undetermined verdicts.
std::string UndecidedText(const RunComparison& run) {
  std::vector<std::string> parts;
  std::vector<std::string_view> hopeless;
  for (const MetricComparison& metric : run.metrics) {
    if (metric.verdict != BarVerdict::kUndetermined) continue;
    const std::string_view title = InfoOf(metric.metric).title;
    if (!metric.pairs_to_decide) {
      hopeless.push_back(title);
      continue;
    }
    const double each = run.pairs.empty() ? 0 : run.seconds / static_cast<double>(run.pairs.size());
    const double seconds = each * static_cast<double>(*metric.pairs_to_decide);
    parts.push_back(fmt::format("{} about {}{}", title,
                                FormatCount(static_cast<uint64_t>(*metric.pairs_to_decide), "pair"),
                                seconds > 0 ? fmt::format(" ({})", DurationText(seconds)) : ""));
  }
  std::string text;
  if (!parts.empty()) {
    text += fmt::format("pairs needed for a verdict: {}; --until decided runs them\n",
                        fmt::join(parts, ", "));
  }
  if (!hopeless.empty()) {
    text += fmt::format("with this spread, more pairs will not give a verdict for: {}\n",
                        fmt::join(hopeless, ", "));
  }
  return text;
}

}  // namespace

MetricComparison JudgeMetric(const RunComparison& run, StepMetric metric,
                             const std::optional<double>& bar) {
  MetricComparison row{.metric = metric, .bar = bar};
  const auto starts = PairsByStart(run, metric);
  const bool any = std::ranges::any_of(starts, [](const auto& start) { return !start.empty(); });
  // Pairs without the figure are ignored.
  if (!any && !run.pairs.empty()) return row;
  row.figures = ComparePairs(starts, run.seed);
  if (bar) row.verdict = Judge(*row.figures, *bar);
  if (row.verdict == BarVerdict::kUndetermined) {
    row.pairs_to_decide = PairsToDecide(*row.figures, *bar);
  }
  return row;
}

void JudgeRun(RunComparison& run, const StepBars& bars,
              const std::array<std::string, kStepMetricCount>& reasons) {
  run.metrics.clear();
  for (const StepMetricInfo& info : kMetrics) {
    const auto index = static_cast<size_t>(info.metric);
    MetricComparison metric = JudgeMetric(run, info.metric, bars[index]);
    if (!metric.figures) metric.reason = reasons[index];
    run.metrics.push_back(std::move(metric));
  }
}

std::string RunComparisonFile(const CaptureFolder& folder, const CaptureRank& rank) {
  return folder.File(fmt::format("compare.{}.json", rank.number()));
}

std::string FigureText(double value, Unit unit) {
  if (!std::isfinite(value)) return "∞";
  if (unit == Unit::kNumber) return fmt::format("{:.3g}", value);
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(value, -9e18, 9e18)));
  const Cell cell(std::in_place_type<int64_t>, whole);
  return ToText(cell, unit);
}

std::string PercentText(double value) { return std::isfinite(value) ? FormatError(value) : "∞"; }

std::string EstimateText(const std::optional<Estimate>& estimate,
                         const std::function<std::string(double)>& text) {
  if (!estimate || !std::isfinite(estimate->value)) return "unknown";
  return fmt::format("{} [{}, {}]", text(estimate->value), text(estimate->low),
                     text(estimate->high));
}

std::string NoiseText(const MachineNoise& noise) {
  std::string text = fmt::format(
      "machine noise: a fixed computation took {} (median of {}); spread from the 10th to the 90th "
      "percentile {} wall, {} CPU",
      FormatTime(noise.wall.median), noise.repeats, PercentText(noise.wall.share()),
      PercentText(noise.cpu.share()));
  if (noise.load) text += fmt::format("; load {:.2f}", *noise.load);
  return text + " on " + FormatCount(static_cast<uint64_t>(noise.cores), "core");
}

std::string AbsentText(std::span<const MetricComparison> metrics) {
  std::vector<std::pair<std::string, std::vector<std::string_view>>> reasons;
  for (const MetricComparison& metric : metrics) {
    if (metric.figures) continue;
    auto found =
        std::ranges::find(reasons, metric.reason, [](const auto& row) { return row.first; });
    if (found == reasons.end()) found = reasons.insert(found, {metric.reason, {}});
    found->second.push_back(InfoOf(metric.metric).title);
  }
  std::string text;
  for (const auto& [reason, titles] : reasons) {
    text += fmt::format("not available ({}): {}\n", reason, fmt::join(titles, "; "));
  }
  return text;
}

std::string VerdictText(std::span<const MetricComparison> metrics) {
  const bool any = std::ranges::any_of(
      metrics, [](const MetricComparison& metric) { return metric.verdict.has_value(); });
  if (!any) return "no metric has a bar\n";
  if (AllMet(metrics)) return "all bars are met\n";
  std::vector<std::string> failed;
  for (const MetricComparison& metric : metrics) {
    if (!metric.verdict || *metric.verdict == BarVerdict::kMet) continue;
    failed.push_back(fmt::format("{} {}", InfoOf(metric.metric).title, Name(*metric.verdict)));
  }
  std::string text = fmt::format("NOT all bars are met: {}\n", fmt::join(failed, ", "));
  for (const MetricComparison& metric : metrics) {
    if (!metric.verdict || !metric.figures || metric.figures->pairs >= kLeastPairs) continue;
    return text + fmt::format("undetermined with {}: a verdict requires at least {} (--pairs)\n",
                              FormatCount(metric.figures->pairs, "pair"), kLeastPairs);
  }
  return text;
}

std::string RunComparisonText(const RunComparison& run) {
  using enum TextTable::Align;
  std::string text =
      fmt::format("rank {}: {} of steps of the original and {}, run alternately{}\n", run.rank,
                  FormatCount(run.pairs.size(), "pair"),
                  run.benchmark.empty() ? "the replay" : "the benchmark " + run.benchmark,
                  run.starts == 1 ? "" : fmt::format("; {} starts of both", run.starts));
  text += NoiseText(run.noise) + "\n";
  TextTable table({kLeft, kRight, kRight, kRight, kRight, kLeft});
  table.Row({"", "original [95 %]", run.benchmark.empty() ? "replay [95 %]" : "benchmark [95 %]",
             "error [95 %]", "bar", "verdict"});
  for (const MetricComparison& metric : run.metrics) {
    if (!metric.figures) continue;
    const StepMetricInfo& info = InfoOf(metric.metric);
    const auto figure = [&](double value) { return FigureText(value, info.unit); };
    table.Row({std::string(info.title), EstimateText(metric.figures->original, figure),
               EstimateText(metric.figures->replay, figure),
               EstimateText(metric.figures->error, PercentText),
               metric.bar ? "±" + FormatShare(*metric.bar) : "",
               metric.verdict ? std::string(Name(*metric.verdict)) : ""});
  }
  if (!run.pairs.empty()) text += table.Text() + AbsentText(run.metrics);
  const auto share = [](const std::optional<double>& part) {
    return part ? FormatShare(*part) : "unknown";
  };
  if (run.benchmark.empty() || run.replay.operators > 0) {
    text += fmt::format("operators replayed: {} of {}; {}\n",
                        FormatCount(static_cast<uint64_t>(run.replay.operators_replayed)),
                        FormatCount(static_cast<uint64_t>(run.replay.operators)),
                        run.benchmark.empty() ? "same kernels: " + share(run.replay.same_kernels)
                                              : "by time: " + share(run.replay.time_coverage));
  }
  if (run.steps_of_other > 0) {
    text += fmt::format("steps with other signatures, run between pairs: {}\n", run.steps_of_other);
  }
  for (const std::string& note : run.notes) text += "note: " + note + "\n";
  if (!run.ended.empty()) text += run.ended + "\n";
  return text + VerdictText(run.metrics) + UndecidedText(run);
}

std::vector<Table::Column> WithFigures(std::vector<Table::Column> columns) {
  columns.insert(columns.end(), {{"original", "original", Unit::kNumber},
                                 {"original_low", "from", Unit::kNumber},
                                 {"original_high", "to", Unit::kNumber},
                                 {"replay", "replay", Unit::kNumber},
                                 {"replay_low", "from", Unit::kNumber},
                                 {"replay_high", "to", Unit::kNumber},
                                 {"error", "error", Unit::kChange},
                                 {"error_low", "from", Unit::kChange},
                                 {"error_high", "to", Unit::kChange},
                                 {"bar", "bar ±", Unit::kShare},
                                 {"verdict", "verdict", Unit::kText}});
  return columns;
}

void AddFigures(const MetricComparison& metric, double scale, std::vector<Cell>& cells) {
  const auto finite = [](double value) { return std::isfinite(value) ? Cell(value) : Cell(); };
  const auto add = [&](const std::optional<Estimate>& estimate, double factor) {
    cells.push_back(estimate ? finite(estimate->value * factor) : Cell());
    cells.push_back(estimate ? finite(estimate->low * factor) : Cell());
    cells.push_back(estimate ? finite(estimate->high * factor) : Cell());
  };
  add(metric.figures->original, scale);
  add(metric.figures->replay, scale);
  add(metric.figures->error, 1);
  cells.push_back(ToCell(metric.bar));
  cells.push_back(metric.verdict ? Cell(std::string(Name(*metric.verdict))) : Cell());
}

Table RunComparisonTable(const std::vector<RunComparison>& runs) {
  Table table{.key = "compared",
              .title = "original and replay run alternately, medians with 95 % intervals",
              .columns = WithFigures({{"rank", "rank", Unit::kText},
                                      {"metric", "metric", Unit::kText},
                                      {"unit", "unit", Unit::kText}}),
              .rows = {}};
  for (const RunComparison& run : runs) {
    for (const MetricComparison& metric : run.metrics) {
      if (!metric.figures) continue;
      const StepMetricInfo& info = InfoOf(metric.metric);
      const auto [unit, scale] = Scale(info.unit);
      std::vector<Cell> cells = {run.rank, std::string(info.title), unit};
      AddFigures(metric, scale, cells);
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

}  // namespace etude
