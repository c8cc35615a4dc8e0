#include "src/report/certificate/run_comparison_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/version.h"
#include "src/formats/io/byte_source.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr DocumentKind kRunDocument = {.name = "a result of `etude compare --run`",
                                       .format = "etude-compare-run"};
constexpr int64_t kMostStarts = 1000;
constexpr size_t kMostPairs = 100'000;
constexpr double kMostFigure = 1e18;  // so that no sum or ratio is infinite over infinite

// -- Writing -------------------------------------------------------------------------------------

OrderedJson NumberJson(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson SpreadJson(const Spread& spread) {
  return {{"p10_ns", spread.p10.count},
          {"median_ns", spread.median.count},
          {"p90_ns", spread.p90.count},
          {"spread", spread.share()}};
}

OrderedJson NoiseJson(const MachineNoise& noise) {
  return {{"repeats", noise.repeats},
          {"wall", SpreadJson(noise.wall)},
          {"cpu", SpreadJson(noise.cpu)},
          {"load", NumberJson(noise.load)},
          {"cores", noise.cores}};
}

OrderedJson FiguresJson(const StepFigures& figures) {
  OrderedJson json = OrderedJson::object();
  for (const StepMetricInfo& info : StepMetrics()) {
    const auto& value = figures[info.metric];
    if (!value) continue;
    const bool whole = std::trunc(*value) == *value && std::abs(*value) < 1e15;
    json[std::string(info.name)] =
        whole ? OrderedJson(static_cast<int64_t>(*value)) : OrderedJson(*value);
  }
  return json;
}

// -- Reading -------------------------------------------------------------------------------------

const StepMetricInfo* MetricNamed(std::string_view name) {
  const auto metrics = StepMetrics();
  const auto found = std::ranges::find(metrics, name, &StepMetricInfo::name);
  return found == metrics.end() ? nullptr : &*found;
}

// Infinite values were written as null.
std::optional<Estimate> ParseEstimate(const JsonMembers& estimate, const char* value_name) {
  if (estimate.empty()) return std::nullopt;
  const auto number = [&](const char* name) { return estimate.Number(name).value_or(INFINITY); };
  return Estimate{.value = number(value_name), .low = number("low"), .high = number("high")};
}

std::optional<BarVerdict> ParseVerdict(const JsonMembers& row) {
  const auto name = row.Text("verdict");
  if (!name) return std::nullopt;
  const auto verdict = BarVerdictFromName(*name);
  if (!verdict) row.Refuse("verdict", "met, missed or undetermined");
  return verdict;
}

std::optional<double> ParseBar(const JsonMembers& row) {
  const auto bar = row.Number("bar");
  if (bar && *bar < 0) row.Refuse("bar", "a share >= 0");
  return bar;
}

// Skips metrics of later versions.
std::vector<MetricComparison> ParseMetrics(const JsonMembers& run) {
  std::vector<MetricComparison> metrics;
  for (const JsonMembers& row : run.Objects("metrics")) {
    const auto name = row.Text("name");
    if (!name) row.Refuse("name", "the name of a metric");
    const StepMetricInfo* info = name ? MetricNamed(*name) : nullptr;
    if (info == nullptr) continue;
    if (std::ranges::count(metrics, info->metric, &MetricComparison::metric) != 0) {
      row.Refuse("name", "each metric once");
    }
    MetricComparison metric{.metric = info->metric,
                            .bar = ParseBar(row),
                            .verdict = ParseVerdict(row),
                            .pairs_to_decide = row.Whole("pairs_to_decide", 0, kPairsMost + 1)};
    if (row.Has("not_available")) {
      metric.reason = row.Text("not_available").value_or("");
    } else {
      metric.figures =
          PairedComparison{.pairs = static_cast<size_t>(row.Whole("pairs", 0).value_or(0)),
                           .original = ParseEstimate(row.Object("original"), "median"),
                           .replay = ParseEstimate(row.Object("replay"), "median"),
                           .error = ParseEstimate(row.Object("error"), "value")};
    }
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

StepFigures ParseFigures(const JsonMembers& side) {
  StepFigures figures;
  for (const StepMetricInfo& info : StepMetrics()) {
    const std::string name(info.name);
    figures[info.metric] = side.Number(name.c_str());
    if (std::abs(figures[info.metric].value_or(0)) > kMostFigure) {
      side.Refuse(name.c_str(), "a figure of at most 1e18");
    }
  }
  return figures;
}

std::vector<StepPair> ParsePairs(const JsonMembers& run, int64_t starts) {
  std::vector<StepPair> pairs;
  if (run.List("samples").size() > kMostPairs) {
    run.Refuse("samples", fmt::format("at most {} pairs", kMostPairs));
    return pairs;
  }
  for (const JsonMembers& row : run.Objects("samples")) {
    const auto start = row.Whole("start", 0, starts - 1);
    const auto first = row.Text("first");
    if (first && *first != "original" && *first != "replay") {
      row.Refuse("first", "original or replay");
    }
    pairs.push_back({.start = static_cast<size_t>(start.value_or(0)),
                     .original_first = first != "replay",
                     .original = ParseFigures(row.Object("original")),
                     .replay = ParseFigures(row.Object("replay"))});
  }
  return pairs;
}

Spread ParseSpread(const JsonMembers& spread) {
  const auto time = [&](const char* name) { return Nanos{spread.Whole(name, 0).value_or(0)}; };
  return {.p10 = time("p10_ns"), .median = time("median_ns"), .p90 = time("p90_ns")};
}

std::optional<NamedTexts> ParseEnvironment(const JsonMembers& run) {
  const JsonMembers environment = run.Object("environment");
  if (environment.json().is_null()) return std::nullopt;
  return ParseNamedTexts(environment);
}

MachineNoise ParseNoise(const JsonMembers& noise) {
  constexpr int64_t kMostCores = 1 << 20;
  return {.repeats = static_cast<size_t>(noise.Whole("repeats", 0).value_or(0)),
          .wall = ParseSpread(noise.Object("wall")),
          .cpu = ParseSpread(noise.Object("cpu")),
          .load = noise.Number("load"),
          .cores = static_cast<int>(noise.Whole("cores", 0, kMostCores).value_or(0))};
}

// -- Checking ------------------------------------------------------------------------------------

// Compares up to the last digits, which depend on the compiler.
bool Agree(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::isfinite(a) == std::isfinite(b);
  return std::abs(a - b) <= 1e-9 * std::max({std::abs(a), std::abs(b), 1.0});
}

bool Agree(const std::optional<Estimate>& a, const std::optional<Estimate>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return Agree(a->value, b->value) && Agree(a->low, b->low) && Agree(a->high, b->high);
}

bool Agree(const MetricComparison& a, const MetricComparison& b) {
  if (!a.figures || !b.figures) return a.figures.has_value() == b.figures.has_value();
  return a.verdict == b.verdict && a.figures->pairs == b.figures->pairs &&
         Agree(a.figures->original, b.figures->original) &&
         Agree(a.figures->replay, b.figures->replay) && Agree(a.figures->error, b.figures->error);
}

}  // namespace

OrderedJson ToJson(const std::optional<Estimate>& estimate, std::string_view value_name) {
  if (!estimate) return nullptr;
  return {{value_name, NumberJson(estimate->value)},
          {"low", NumberJson(estimate->low)},
          {"high", NumberJson(estimate->high)}};
}

OrderedJson ToJson(const MetricComparison& metric) {
  const StepMetricInfo& info = InfoOf(metric.metric);
  OrderedJson json = {{"name", info.name}, {"unit", Name(info.unit)}};
  if (metric.figures) {
    json["pairs"] = metric.figures->pairs;
    json["original"] = ToJson(metric.figures->original, "median");
    json["replay"] = ToJson(metric.figures->replay, "median");
    json["error"] = ToJson(metric.figures->error, "value");
  } else {
    json["not_available"] = metric.reason;
  }
  json["bar"] = NumberJson(metric.bar);
  json["verdict"] = metric.verdict ? OrderedJson(Name(*metric.verdict)) : OrderedJson(nullptr);
  if (metric.pairs_to_decide) json["pairs_to_decide"] = *metric.pairs_to_decide;
  return json;
}

OrderedJson ToJson(const RunComparison& run) {
  OrderedJson json = {
      {"format", kRunDocument.format},
      {"version", kRunDocument.version},
      {"etude", run.etude.empty() ? std::string(kVersion) : run.etude},
      {"measured", run.measured.empty() ? OrderedJson() : OrderedJson(run.measured)},
      {"rank", run.rank},
      {"world_size", run.world_size},
      {"command", run.command},
      {"machine", ToJson(run.machine)},
      {"versions", run.versions},
      {"environment", OrNull(run.environment)},
      {"threads", OrNull(run.threads)},
      {"gaps", run.gaps.empty() ? OrderedJson() : OrderedJson(run.gaps)},
      {"seed", run.seed}};
  if (!run.benchmark.empty()) json["benchmark"] = run.benchmark;
  json["pairs"] = {{"wanted", run.pairs_wanted}, {"measured", run.pairs.size()}};
  json["starts"] = run.starts;
  if (run.seconds > 0) json["seconds"] = run.seconds;
  json["ended"] = run.ended.empty() ? OrderedJson(nullptr) : OrderedJson(run.ended);
  json["original"] = {{"warmup_steps", run.steps_passed},
                      {"steps_of_other_signatures", run.steps_of_other}};
  json["replay"] = ToJson(run.replay);
  json["noise"] = NoiseJson(run.noise);
  json["notes"] = run.notes;
  json["all_met"] = run.all_met();
  json["metrics"] = OrderedJson::array();
  for (const MetricComparison& metric : run.metrics) json["metrics"].push_back(ToJson(metric));
  json["samples"] = OrderedJson::array();
  for (const StepPair& pair : run.pairs) {
    json["samples"].push_back({{"start", pair.start},
                               {"first", pair.original_first ? "original" : "replay"},
                               {"original", FiguresJson(pair.original)},
                               {"replay", FiguresJson(pair.replay)}});
  }
  return json;
}

RunComparison ParseRunComparison(const JsonMembers& members) {
  constexpr int64_t kMostThreads = 1 << 16;
  const JsonMembers original = members.Object("original");
  RunComparison run{.rank = members.Whole("rank", 0).value_or(0),
                    .world_size = members.Whole("world_size", 1).value_or(1),
                    .command = members.Texts("command"),
                    .benchmark = members.Text("benchmark").value_or(""),
                    .threads = members.Whole("threads", 1, kMostThreads),
                    .pairs_wanted = members.Object("pairs").Whole("wanted", 0).value_or(0),
                    .starts = members.Whole("starts", 1, kMostStarts).value_or(1),
                    .seed = static_cast<uint64_t>(members.Whole("seed", 0).value_or(0)),
                    .seconds = members.Number("seconds").value_or(0),
                    .ended = members.Text("ended").value_or(""),
                    .steps_passed = original.Whole("warmup_steps", 0).value_or(0),
                    .steps_of_other = original.Whole("steps_of_other_signatures", 0).value_or(0),
                    .etude = members.Text("etude").value_or(""),
                    .measured = members.Text("measured").value_or(""),
                    .gaps = members.Text("gaps").value_or(""),
                    .machine = ParseMachineFacts(members.Object("machine")),
                    .versions = ParseNamedTexts(members.Object("versions")),
                    .environment = ParseEnvironment(members),
                    .replay = ParseReplayFacts(members.Object("replay")),
                    .noise = ParseNoise(members.Object("noise")),
                    .notes = members.Texts("notes"),
                    .pairs = {},
                    .metrics = ParseMetrics(members)};
  run.pairs = ParsePairs(members, run.starts);
  if (run.metrics.empty()) members.Refuse("metrics", "metrics of a comparison");
  return run;
}

Result<RunComparison> ReadRunComparison(const std::string& path, const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json json, ReadDocument(path, kRunDocument, context));
  Status status;
  RunComparison run = ParseRunComparison(JsonMembers(path + ": comparison", json, status));
  ETUDE_RETURN_IF_ERROR(status);
  return run;
}

Status CheckFigures(const std::string& where, const RunComparison& run) {
  for (const MetricComparison& metric : run.metrics) {
    if (Agree(metric, JudgeMetric(run, metric.metric, metric.bar))) continue;
    return BadInput(fmt::format("{}: metric {}: found figures that do not match its pairs", where,
                                InfoOf(metric.metric).name));
  }
  return {};
}

}  // namespace etude
