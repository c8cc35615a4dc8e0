#include "src/torch/replay_report.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/report/format.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

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

Json CountsJson(std::span<const NamedCount> counts) {
  Json json = Json::array();
  for (const NamedCount& row : counts) json.push_back({{"op", row.name}, {"count", row.count}});
  return json;
}

Json SkippedJson(const ReplayReport& report) {
  Json json = Json::array();
  for (const SkippedOperators& row : report.skipped) {
    json.push_back({{"op", row.op},
                    {"reason", row.reason},
                    {"count", row.count},
                    {"time_share", OrNull(row.time_share)},
                    {"schema", row.schema}});
  }
  return json;
}

std::string TimesText(const std::optional<TimeSummary>& summary) {
  if (!summary) return "unknown";
  return fmt::format("{} [{}, {}]", FormatTime(summary->median), FormatTime(summary->p25),
                     FormatTime(summary->p75));
}

std::string ErrorText(const std::optional<TimeSummary>& original,
                      const std::optional<TimeSummary>& replay) {
  const auto error = RelativeError(original, replay);
  return error ? fmt::format("{:+.1f} %", *error * 100) : "";
}

std::string ShareText(const std::optional<double>& share) {
  return share ? FormatShare(*share) : "unknown";
}

void AddCounts(TextTable& table, std::string_view what, std::span<const NamedCount> counts) {
  constexpr size_t kShown = 5;
  if (counts.empty()) return;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, counts.size()); ++i) {
    text += fmt::format("{}{} × {}", i == 0 ? "" : ", ", counts[i].count, counts[i].name);
  }
  if (counts.size() > kShown) text += fmt::format(", … ({} kinds)", counts.size());
  table.Row({std::string(what), std::move(text)});
}

std::string TimesTable(const ReplayReport& report) {
  using enum TextTable::Align;
  TextTable table({kLeft, kRight, kRight, kRight});
  table.Row({"", "original [p25, p75]", "replay [p25, p75]", "error"});
  table.Row({"step, CPU time", TimesText(report.original.cpu), TimesText(report.replay.cpu),
             ErrorText(report.original.cpu, report.replay.cpu)});
  table.Row({"step, wall time", TimesText(report.original.wall), TimesText(report.replay.wall),
             ErrorText(report.original.wall, report.replay.wall)});
  return table.Text();
}

std::string OperatorsTable(const ReplayReport& report) {
  using enum TextTable::Align;
  TextTable table({kLeft, kRight, kRight, kRight, kRight});
  if (report.per_operator.empty()) return "";
  table.Row({"operator", "calls", "recorded", "replayed", "difference"});
  for (const OperatorTime& row : report.per_operator) {
    table.Row({row.op, FormatCount(static_cast<uint64_t>(row.count)),
               row.recorded ? FormatTime(*row.recorded) : "unknown", FormatTime(row.replayed),
               row.recorded ? FormatTime(row.replayed - *row.recorded) : ""});
  }
  return table.Text();
}

}  // namespace

std::string ReplayReportJson(const ReplayReport& report) {
  Json json = {{"format", "etude-replay"}, {"version", 1}};
  json["source"] = report.source;
  json["rank"] = report.rank < 0 ? Json(nullptr) : Json(report.rank);
  json["device"] = report.device;
  json["torch"] = report.torch_version;
  json["threads"] = report.threads;
  json["seed"] = report.seed;
  json["warmup"] = report.warmup;
  json["coverage"] = {{"ops", report.coverage()},
                      {"time", OrNull(report.time_coverage)},
                      {"recorded", report.operators},
                      {"replayed", report.operators_replayed}};
  json["skipped"] = SkippedJson(report);
  json["calls"] = report.calls;
  json["same_kernels"] = OrNull(report.same_kernels);
  json["missing_kernels"] = CountsJson(report.missing_kernels);
  json["extra_kernels"] = CountsJson(report.extra_kernels);
  json["replaced_by_parts"] = CountsJson(report.replaced_by_parts);
  json["coerced"] = report.coerced;
  json["assumed_values"] = report.assumed_values;
  json["non_finite_tensors"] = report.non_finite;
  json["denormal_tensors"] = report.denormal;
  json["setup_ms"] = report.setup.ms();
  json["fill_ms"] = report.fill.ms();
  json["outside_bytes"] = report.outside_bytes;
  json["peak_bytes"] = report.peak_bytes;
  json["minor_faults_per_step"] = OrNull(report.minor_faults);
  json["original"] = StepJson(report.original);
  json["replay"] = StepJson(report.replay);
  json["error"] = {{"wall", OrNull(RelativeError(report.original.wall, report.replay.wall))},
                   {"cpu", OrNull(RelativeError(report.original.cpu, report.replay.cpu))}};
  Json operators = Json::array();
  for (const OperatorTime& row : report.per_operator) {
    operators.push_back({{"op", row.op},
                         {"count", row.count},
                         {"recorded_ms", row.recorded ? Json(row.recorded->ms()) : Json(nullptr)},
                         {"replayed_ms", row.replayed.ms()}});
  }
  if (!operators.empty()) json["per_operator"] = std::move(operators);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ReplayReportText(const ReplayReport& report) {
  using enum TextTable::Align;
  std::string text = fmt::format("replay of {} on {}, torch {}, {} thread{}\n", report.source,
                                 report.device, report.torch_version, report.threads,
                                 report.threads == 1 ? "" : "s");
  text += TimesTable(report);
  TextTable facts({kLeft, kLeft});
  facts.Row({"operators", fmt::format("{} of {} replayed ({} by count, {} by time)",
                                      FormatCount(static_cast<uint64_t>(report.operators_replayed)),
                                      FormatCount(static_cast<uint64_t>(report.operators)),
                                      FormatShare(report.coverage()),
                                      ShareText(report.time_coverage))});
  facts.Row({"same kernels", ShareText(report.same_kernels)});
  AddCounts(facts, "not run", report.missing_kernels);
  AddCounts(facts, "run besides", report.extra_kernels);
  AddCounts(facts, "run as parts", report.replaced_by_parts);
  if (report.coerced != 0) {
    facts.Row({"coerced", fmt::format("results of {} operators brought to the recorded sizes",
                                      report.coerced)});
  }
  if (report.assumed_values != 0) {
    facts.Row({"assumed", fmt::format("{} argument values that the trace lacks",
                                      report.assumed_values)});
  }
  if (report.non_finite != 0 || report.denormal != 0) {
    facts.Row({"values", fmt::format("{} tensors with infinities or NaN, {} with denormals",
                                     report.non_finite, report.denormal)});
  }
  facts.Row({"memory", fmt::format("{} from outside, {} at the peak",
                                   FormatBytes(Bytes{report.outside_bytes}),
                                   FormatBytes(Bytes{report.peak_bytes}))});
  facts.Row({"set-up", fmt::format("{}, filling memory {}", FormatTime(report.setup),
                                   FormatTime(report.fill))});
  text += facts.Text();
  TextTable skipped({kRight, kLeft, kRight, kLeft});
  for (const SkippedOperators& row : report.skipped) {
    skipped.Row({fmt::format("{} ×", row.count), row.op,
                 row.time_share ? FormatShare(*row.time_share) + " of the time" : "",
                 row.reason});
  }
  if (!skipped.empty()) text += "skipped\n" + skipped.Text();
  return text + OperatorsTable(report);
}

}  // namespace etude
