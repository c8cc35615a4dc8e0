#include "src/torch/replay_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/version.h"
#include "src/report/format.h"
#include "src/report/health_output.h"
#include "src/report/operator_share.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json SummaryJson(const std::optional<TimeSummary>& summary) {
  if (!summary) return nullptr;
  return {{"median", summary->median.ms()},
          {"p25", summary->p25.ms()},
          {"p75", summary->p75.ms()},
          {"min", summary->min.ms()},
          {"count", summary->count}};
}

Json StepJson(const StepTimes& times) {
  return {{"step_ms", {{"wall", SummaryJson(times.wall)}, {"cpu", SummaryJson(times.cpu)}}}};
}

Json CountsJson(const std::vector<NamedCount>& counts) {
  Json rows = Json::array();
  for (const NamedCount& row : counts) rows.push_back({{"op", row.name}, {"count", row.count}});
  return rows;
}

Json RanksJson(const ReplayReport& report) {
  Json ranks = Json::array();
  for (const RankSummary& row : report.ranks) {
    Json json = {{"rank", row.rank}};
    json.update(StepJson(row.replay));
    json["coverage"] = {{"ops", ReplayReport::Coverage(row.operators_replayed, row.operators)},
                        {"time", OrNull(row.time_coverage)}};
    ranks.push_back(std::move(json));
  }
  return ranks;
}

Json PartJson(const ReplayPart& part) {
  if (part.is_whole()) return nullptr;
  return {{"label", part.label}, {"only", part.only}, {"skip", part.skip}};
}

Json StatsJson(const Stats& stats) {
  Json json = Json::object();
  for (const StatInfo& info : StatTable()) {
    if (stats[info.stat] != 0) json[std::string(info.name)] = stats[info.stat];
  }
  return json;
}

std::string TimesText(const std::optional<TimeSummary>& summary) {
  if (!summary) return "unknown";
  return fmt::format("{} [{}, {}]", FormatTime(summary->median), FormatTime(summary->p25),
                     FormatTime(summary->p75));
}

std::string ErrorText(const std::optional<double>& error) {
  return error ? fmt::format("{:+.1f} %", *error * 100) : "unknown";
}

std::string StepText(const ReplayReport& report) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.Row({"", "original [p25, p75]", "replay [p25, p75]", "error"});
  table.Row({"step, CPU time", TimesText(report.original.cpu), TimesText(report.replay.cpu),
             ErrorText(RelativeError(report.original.cpu, report.replay.cpu))});
  table.Row({"step, wall time", TimesText(report.original.wall), TimesText(report.replay.wall),
             ErrorText(RelativeError(report.original.wall, report.replay.wall))});
  return table.Text("");
}

std::string CoverageText(const ReplayReport& report) {
  std::string text =
      fmt::format("operators replayed: {} of {} ({}), by time {}; same kernels: {}\n",
                  report.operators_replayed, report.operators, FormatShare(report.coverage()),
                  report.time_coverage ? FormatShare(*report.time_coverage) : "unknown",
                  report.same_kernels ? FormatShare(*report.same_kernels) : "unknown");
  TextTable skipped({Align::kLeft, Align::kRight, Align::kRight, Align::kLeft});
  for (const SkippedOperators& row : report.skipped) {
    skipped.Row({row.op, fmt::format("{} ×", row.count),
                 row.time_share ? FormatShare(*row.time_share) : "time unknown", row.reason});
  }
  if (!skipped.empty())
    text += "skipped (operator, count, share of time, reason)\n" + skipped.Text();
  return text;
}

std::string RanksText(const ReplayReport& report) {
  if (report.ranks.empty()) return "";
  TextTable table({Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.Row({"rank", "step, CPU time", "step, wall time", "operators replayed"});
  for (const RankSummary& row : report.ranks) {
    table.Row({std::to_string(row.rank), TimesText(row.replay.cpu), TimesText(row.replay.wall),
               fmt::format("{} of {}", row.operators_replayed, row.operators)});
  }
  return table.Text();
}

std::string OperatorsText(const ReplayReport& report) {
  if (report.per_operator.empty()) return "";
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.Row({"operator", "count", "recorded", "replayed"});
  for (const OperatorTime& row : report.per_operator) {
    table.Row({row.op, FormatCount(static_cast<uint64_t>(row.count)),
               row.recorded ? FormatTime(*row.recorded) : "unknown", FormatTime(row.replayed)});
  }
  return table.Text();
}

}  // namespace

std::string ReplayReportJson(const ReplayReport& report) {
  Json json;
  json["format"] = "etude-replay";
  json["version"] = 1;
  json["etude"] = kVersion;
  json["torch"] = report.torch_version;
  json["source"] = report.source;
  json["rank"] = OrNull(report.rank);
  json["device"] = report.device;
  json["threads"] = report.threads;
  json["seed"] = report.seed;
  json["part"] = PartJson(report.part);
  json["stats"] = StatsJson(report.stats);
  json["health"] = ToJson(report.health);
  json["recorded"] = {
      {"step_ms", report.recorded_step ? Json(report.recorded_step->ms()) : Json(nullptr)},
      {"operator_share", OrNull(report.operator_share)}};
  json["operators"] = {{"total", report.operators},
                       {"replayed", report.operators_replayed},
                       {"calls", report.calls}};
  json["coverage"] = {{"ops", report.coverage()}, {"time", OrNull(report.time_coverage)}};
  Json skipped = Json::array();
  for (const SkippedOperators& row : report.skipped) {
    skipped.push_back({{"op", row.op},
                       {"schema", row.schema},
                       {"reason", row.reason},
                       {"count", row.count},
                       {"time_share", OrNull(row.time_share)}});
  }
  json["skipped"] = std::move(skipped);
  json["original"] = StepJson(report.original);
  json["replay"] = StepJson(report.replay);
  json["replay"]["warmup"] = report.warmup;
  json["replay"]["minor_faults"] = OrNull(report.minor_faults);
  json["error"] = {{"wall", OrNull(RelativeError(report.original.wall, report.replay.wall))},
                   {"cpu", OrNull(RelativeError(report.original.cpu, report.replay.cpu))}};
  json["same_kernels"] = OrNull(report.same_kernels);
  json["kernels"] = {{"missing", CountsJson(report.missing_kernels)},
                     {"extra", CountsJson(report.extra_kernels)}};
  json["replaced_by_parts"] = CountsJson(report.replaced_by_parts);
  json["coerced"] = {{"shapes", report.coerced}, {"assumed_values", report.assumed_values}};
  json["values"] = {{"non_finite_tensors", report.non_finite},
                    {"denormal_tensors", report.denormal}};
  json["memory"] = {
      {"outside_bytes", report.outside_bytes},
      {"peak_bytes", report.peak_bytes},
      {"copied_bytes", report.copied_bytes},
      {"resident_before_steps_bytes",
       report.resident_before_steps ? Json(report.resident_before_steps->count) : Json(nullptr)}};
  json["setup_ms"] = {{"plan", report.setup.ms()},
                      {"trial", report.trial.ms()},
                      {"fill", report.fill.ms()},
                      {"first_step", report.first_step.ms()}};
  Json operators = Json::array();
  for (const OperatorTime& row : report.per_operator) {
    operators.push_back({{"op", row.op},
                         {"count", row.count},
                         {"recorded_ms", row.recorded ? Json(row.recorded->ms()) : Json(nullptr)},
                         {"replayed_ms", row.replayed.ms()}});
  }
  json["per_operator"] = std::move(operators);
  json["ranks"] = RanksJson(report);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ReplayReportText(const ReplayReport& report) {
  std::string text =
      fmt::format("{}{} on {}, {} thread{}, torch {}\n", report.source,
                  report.rank ? fmt::format(" rank {}", *report.rank) : "", report.device,
                  report.threads, report.threads == 1 ? "" : "s", report.torch_version);
  if (!report.part.is_whole()) text += "a part of the step: no comparison with the original\n";
  text += StepText(report);
  if (report.operator_share) text += OperatorShareText(*report.operator_share);
  text += CoverageText(report);
  if (report.coerced > 0) {
    text += fmt::format("results brought to the recorded sizes: {} operators\n", report.coerced);
  }
  if (report.assumed_values > 0) {
    text += fmt::format("argument values that the trace lacks: {}\n", report.assumed_values);
  }
  if (report.non_finite > 0) {
    text +=
        fmt::format("tensors with infinities or NaN after the last step: {}\n", report.non_finite);
  }
  text += fmt::format("memory: {} from outside, {} at the peak; {} page faults a step\n",
                      FormatBytes({report.outside_bytes}), FormatBytes({report.peak_bytes}),
                      report.minor_faults ? FormatCount(static_cast<uint64_t>(*report.minor_faults))
                                          : std::string("unknown"));
  return text + RanksText(report) + OperatorsText(report);
}

}  // namespace etude
