#include "src/report/run_comparison.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/version.h"
#include "src/report/format.h"
#include "src/report/json_output.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "etude-compare-run";
constexpr int64_t kFormatVersion = 1;

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
    {kGpuMemory, "gpu_memory", "GPU memory in use", Unit::kBytes, std::nullopt},
}};

const StepMetricInfo& InfoOf(StepMetric metric) { return kMetrics[static_cast<size_t>(metric)]; }

// -- JSON ----------------------------------------------------------------------------------------

Json Number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json EstimateJson(const std::optional<Estimate>& estimate, const char* value_name) {
  if (!estimate) return nullptr;
  return {{value_name, Number(estimate->value)},
          {"low", Number(estimate->low)},
          {"high", Number(estimate->high)}};
}

Json SpreadJson(const Spread& spread) {
  return {{"p10_ns", spread.p10.count},
          {"median_ns", spread.median.count},
          {"p90_ns", spread.p90.count},
          {"spread", spread.share()}};
}

Json NoiseJson(const MachineNoise& noise) {
  return {{"repeats", noise.repeats},
          {"wall", SpreadJson(noise.wall)},
          {"cpu", SpreadJson(noise.cpu)},
          {"load", Number(noise.load)},
          {"cores", noise.cores}};
}

Json MetricJson(const MetricComparison& metric) {
  const StepMetricInfo& info = InfoOf(metric.metric);
  Json json = {{"name", info.name}, {"unit", Name(info.unit)}};
  if (metric.figures) {
    json["pairs"] = metric.figures->pairs;
    json["original"] = EstimateJson(metric.figures->original, "median");
    json["replay"] = EstimateJson(metric.figures->replay, "median");
    json["error"] = EstimateJson(metric.figures->error, "value");
  } else {
    json["not_available"] = metric.reason;
  }
  json["bar"] = Number(metric.bar);
  json["verdict"] = metric.verdict ? Json(Name(*metric.verdict)) : Json(nullptr);
  return json;
}

Json FiguresJson(const StepFigures& figures) {
  Json json = Json::object();
  for (const StepMetricInfo& info : kMetrics) {
    const auto& value = figures[info.metric];
    if (!value) continue;
    const bool whole = std::trunc(*value) == *value && std::abs(*value) < 1e15;
    json[std::string(info.name)] = whole ? Json(static_cast<int64_t>(*value)) : Json(*value);
  }
  return json;
}

std::optional<double> ReadNumber(const Json& json, const char* key) {
  const auto it = json.is_object() ? json.find(key) : json.end();
  if (it == json.end() || !it->is_number()) return std::nullopt;
  const double value = it->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// What is written as null was infinite.
std::optional<Estimate> ReadEstimate(const Json& json, const char* key, const char* value_name) {
  const auto it = json.is_object() ? json.find(key) : json.end();
  if (it == json.end() || !it->is_object()) return std::nullopt;
  const auto number = [&](const char* name) { return ReadNumber(*it, name).value_or(INFINITY); };
  return Estimate{.value = number(value_name), .low = number("low"), .high = number("high")};
}

std::optional<MetricComparison> ReadMetric(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const Json name = json.value("name", Json());
  const auto info =
      std::ranges::find_if(kMetrics, [&](const StepMetricInfo& row) { return name == row.name; });
  if (info == kMetrics.end()) return std::nullopt;
  MetricComparison metric{.metric = info->metric, .bar = ReadNumber(json, "bar")};
  if (const auto original = ReadEstimate(json, "original", "median")) {
    metric.figures = PairedComparison{.original = original,
                                      .replay = ReadEstimate(json, "replay", "median"),
                                      .error = ReadEstimate(json, "error", "value")};
  }
  if (const Json verdict = json.value("verdict", Json()); verdict.is_string()) {
    metric.verdict = BarVerdictFromName(verdict.get<std::string>());
  }
  return metric;
}

// -- Text ----------------------------------------------------------------------------------------

std::string FigureText(double value, Unit unit) {
  if (!std::isfinite(value)) return "∞";
  if (unit == Unit::kNumber) return fmt::format("{:.3g}", value);
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(value, -9e18, 9e18)));
  const Cell cell(std::in_place_type<int64_t>, whole);
  return ToText(cell, unit);
}

std::string PercentText(double value) { return std::isfinite(value) ? FormatError(value) : "∞"; }

template <typename ToText>
std::string EstimateText(const std::optional<Estimate>& estimate, ToText text) {
  if (!estimate || !std::isfinite(estimate->value)) return "unknown";
  return fmt::format("{} [{}, {}]", text(estimate->value), text(estimate->low),
                     text(estimate->high));
}

std::string NoiseText(const MachineNoise& noise) {
  std::string text = fmt::format(
      "machine noise: equal arithmetic took {} (median of {}); from the tenth to the ninetieth "
      "percent {} wall, {} CPU",
      FormatTime(noise.wall.median), noise.repeats, PercentText(noise.wall.share()),
      PercentText(noise.cpu.share()));
  if (noise.load) text += fmt::format("; load {:.2f}", *noise.load);
  return text + fmt::format(" on {} core{}\n", noise.cores, noise.cores == 1 ? "" : "s");
}

// What is not available, by reason.
std::string AbsentText(const RunComparison& run) {
  std::vector<std::pair<std::string, std::vector<std::string_view>>> reasons;
  for (const MetricComparison& metric : run.metrics) {
    if (metric.figures) continue;
    auto found =
        std::ranges::find(reasons, metric.reason, [](const auto& row) { return row.first; });
    if (found == reasons.end()) found = reasons.insert(found, {metric.reason, {}});
    found->second.push_back(InfoOf(metric.metric).title);
  }
  std::string text;
  for (const auto& [reason, titles] : reasons) {
    text += fmt::format("not available here ({}): {}\n", reason, fmt::join(titles, "; "));
  }
  return text;
}

std::string VerdictText(const RunComparison& run) {
  const bool any = std::ranges::any_of(
      run.metrics, [](const MetricComparison& metric) { return metric.verdict.has_value(); });
  if (!any) return "no metric has a bar\n";
  if (run.all_met()) return "every bar is met\n";
  std::vector<std::string> failed;
  for (const MetricComparison& metric : run.metrics) {
    if (!metric.verdict || *metric.verdict == BarVerdict::kMet) continue;
    failed.push_back(fmt::format("{} {}", InfoOf(metric.metric).title, Name(*metric.verdict)));
  }
  return fmt::format("NOT every bar is met: {}\n", fmt::join(failed, ", "));
}

// A figure on the scale that its unit has on a page: milliseconds, MiB, plain counts.
std::pair<std::string, double> Scale(Unit unit) {
  if (unit == Unit::kTime) return {"ms", 1e-6};
  if (unit == Unit::kBytes) return {"MiB", 1.0 / (1 << 20)};
  return {"", 1};
}

}  // namespace

std::span<const StepMetricInfo, kStepMetricCount> StepMetrics() { return kMetrics; }

StepBars DefaultBars() {
  StepBars bars;
  for (const StepMetricInfo& info : kMetrics) bars[static_cast<size_t>(info.metric)] = info.bar;
  return bars;
}

bool RunComparison::all_met() const {
  return std::ranges::all_of(metrics, [](const MetricComparison& metric) {
    return !metric.verdict || *metric.verdict == BarVerdict::kMet;
  });
}

void JudgeRun(RunComparison& run, const StepBars& bars,
              const std::array<std::string, kStepMetricCount>& reasons) {
  run.metrics.clear();
  for (const StepMetricInfo& info : kMetrics) {
    const auto index = static_cast<size_t>(info.metric);
    MetricComparison metric{.metric = info.metric, .bar = bars[index]};
    std::vector<std::vector<FigurePair>> starts(static_cast<size_t>(run.starts));
    bool any = false;
    for (const StepPair& pair : run.pairs) {
      const auto &original = pair.original[info.metric], &replay = pair.replay[info.metric];
      if (!original || !replay) continue;
      starts.at(pair.start).push_back({*original, *replay});
      any = true;
    }
    // A figure that some pairs lack is judged by the others.
    if (!any && !run.pairs.empty()) {
      metric.reason = reasons[index];
    } else {
      metric.figures = ComparePairs(starts, run.seed);
      if (metric.bar) metric.verdict = Judge(*metric.figures, *metric.bar);
    }
    run.metrics.push_back(std::move(metric));
  }
}

std::string RunComparisonFile(const CaptureFolder& folder, const CaptureRank& rank) {
  return folder.File(fmt::format("compare.{}.json", rank.number()));
}

std::string RunComparisonJson(const RunComparison& run) {
  Json json = {{"format", kFormat},
               {"version", kFormatVersion},
               {"etude", kVersion},
               {"rank", run.rank},
               {"world_size", run.world_size},
               {"command", run.command},
               {"threads", OrNull(run.threads)},
               {"seed", run.seed}};
  json["pairs"] = {{"wanted", run.pairs_wanted}, {"measured", run.pairs.size()}};
  json["starts"] = run.starts;
  json["ended"] = run.ended.empty() ? Json(nullptr) : Json(run.ended);
  json["original"] = {{"warmup_steps", run.steps_passed},
                      {"steps_of_other_signatures", run.steps_of_other}};
  json["replay"] = {{"operators", run.operators}, {"operators_replayed", run.operators_replayed}};
  json["noise"] = NoiseJson(run.noise);
  json["notes"] = run.notes;
  json["all_met"] = run.all_met();
  json["metrics"] = Json::array();
  for (const MetricComparison& metric : run.metrics) json["metrics"].push_back(MetricJson(metric));
  json["samples"] = Json::array();
  for (const StepPair& pair : run.pairs) {
    json["samples"].push_back({{"start", pair.start},
                               {"first", pair.original_first ? "original" : "replay"},
                               {"original", FiguresJson(pair.original)},
                               {"replay", FiguresJson(pair.replay)}});
  }
  return JsonText(json, 1);
}

Result<RunComparison> ReadRunComparison(const std::string& path) {
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("format", Json()) != kFormat) {
    return BadInput(fmt::format("{}: expected JSON with \"format\": \"{}\"", path, kFormat));
  }
  const Json version = json.value("version", Json());
  if (!version.is_number_integer() || version.get<int64_t>() != kFormatVersion) {
    return BadInput(fmt::format("{}: expected version {}", path, kFormatVersion));
  }
  RunComparison run;
  const auto rank = json.find("rank");
  if (rank != json.end() && rank->is_number_integer()) run.rank = rank->get<int64_t>();
  if (const auto metrics = json.find("metrics"); metrics != json.end() && metrics->is_array()) {
    for (const Json& item : *metrics) {
      if (auto metric = ReadMetric(item)) run.metrics.push_back(*std::move(metric));
    }
  }
  if (run.metrics.empty()) return BadInput(path + ": expected metrics of a comparison");
  return run;
}

std::string RunComparisonText(const RunComparison& run) {
  using enum TextTable::Align;
  std::string text =
      fmt::format("rank {}: {} pair{} of a step of the original and one of the replay, in turn{}\n",
                  run.rank, run.pairs.size(), run.pairs.size() == 1 ? "" : "s",
                  run.starts == 1 ? "" : fmt::format("; {} starts of both", run.starts));
  text += NoiseText(run.noise);
  TextTable table({kLeft, kRight, kRight, kRight, kRight, kLeft});
  table.Row({"", "original [95 %]", "replay [95 %]", "error [95 %]", "bar", "verdict"});
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
  if (!run.pairs.empty()) text += table.Text() + AbsentText(run);
  text += fmt::format("operators replayed: {} of {}\n", run.operators_replayed, run.operators);
  if (run.steps_of_other > 0) {
    text +=
        fmt::format("steps of other signatures, let run between pairs: {}\n", run.steps_of_other);
  }
  for (const std::string& note : run.notes) text += "note: " + note + "\n";
  if (!run.ended.empty()) text += run.ended + "\n";
  return text + VerdictText(run);
}

Table RunComparisonTable(const std::vector<RunComparison>& runs) {
  Table table{.key = "compared",
              .title = "original and replay in turn, medians with 95 % intervals",
              .columns = {{"rank", "rank", Unit::kText},
                          {"metric", "metric", Unit::kText},
                          {"unit", "unit", Unit::kText},
                          {"original", "original", Unit::kNumber},
                          {"original_low", "from", Unit::kNumber},
                          {"original_high", "to", Unit::kNumber},
                          {"replay", "replay", Unit::kNumber},
                          {"replay_low", "from", Unit::kNumber},
                          {"replay_high", "to", Unit::kNumber},
                          {"error", "error", Unit::kShare},
                          {"error_low", "from", Unit::kShare},
                          {"error_high", "to", Unit::kShare},
                          {"bar", "bar ±", Unit::kShare},
                          {"verdict", "verdict", Unit::kText}},
              .rows = {}};
  const auto finite = [](double value) { return std::isfinite(value) ? Cell(value) : Cell(); };
  for (const RunComparison& run : runs) {
    for (const MetricComparison& metric : run.metrics) {
      if (!metric.figures) continue;
      const StepMetricInfo& info = InfoOf(metric.metric);
      const auto [unit, scale] = Scale(info.unit);
      std::vector<Cell> cells = {run.rank, std::string(info.title), unit};
      const auto add = [&](const std::optional<Estimate>& estimate, double factor) {
        cells.push_back(estimate ? finite(estimate->value * factor) : Cell());
        cells.push_back(estimate ? finite(estimate->low * factor) : Cell());
        cells.push_back(estimate ? finite(estimate->high * factor) : Cell());
      };
      add(metric.figures->original, scale);
      add(metric.figures->replay, scale);
      add(metric.figures->error, 1);
      cells.push_back(metric.bar ? Cell(*metric.bar) : Cell());
      cells.push_back(metric.verdict ? Cell(std::string(Name(*metric.verdict))) : Cell());
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

}  // namespace etude
