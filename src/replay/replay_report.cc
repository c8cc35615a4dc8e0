#include "src/replay/replay_report.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/text/ascii.h"
#include "src/base/text/format_count.h"
#include "src/base/version.h"
#include "src/report/tables/operator_share.h"
#include "src/report/text/format.h"
#include "src/report/text/health_output.h"
#include "src/report/text/json_output.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

Json MsOrNull(std::optional<Nanos> time) { return time ? Json(time->ms()) : Json(nullptr); }

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

Json KernelCountsJson(const std::vector<KernelCount>& counts) {
  Json rows = Json::array();
  for (const KernelCount& row : counts) {
    rows.push_back({{"op", row.op}, {"inputs", row.inputs}, {"count", row.count}});
  }
  return rows;
}

Json KernelsJson(const std::optional<KernelMatch>& kernels) {
  if (!kernels) return nullptr;
  return {{"recorded", kernels->recorded},
          {"same_by_time", OrNull(kernels->by_time)},
          {"missing", KernelCountsJson(kernels->missing)},
          {"extra", KernelCountsJson(kernels->extra)}};
}

// Returns the shares of differing time, in total and by phase.
Json DifferenceJson(const std::vector<OperatorTime>& rows) {
  Json json = {{"all", OrNull(TimeDifference(rows))}};
  for (const Phase phase : kPhases) {
    json[std::string(Name(phase))] = OrNull(TimeDifference(rows, phase));
  }
  return json;
}

Json OperatorsJson(const ReplayReport& report) {
  Json rows = Json::array();
  if (!report.per_operator) return rows;
  if (!report.kernels) return nullptr;
  for (const OperatorTime& row : report.operator_times) {
    rows.push_back({{"op", row.op},
                    {"phase", Name(row.phase)},
                    {"count", row.count},
                    {"recorded_ms", MsOrNull(row.recorded)},
                    {"replayed_ms", MsOrNull(row.replayed)}});
  }
  return rows;
}

// Returns operations and bytes per second; nullopt if some work was not done or its time is
// unknown.
std::optional<Work> RateOf(const std::optional<Work>& work, const StepTimes& times, bool all) {
  if (!work || !all || !times.wall || times.wall->median.count <= 0) return std::nullopt;
  const double seconds = static_cast<double>(times.wall->median.count) * 1e-9;
  return Work{.flop = work->flop / seconds, .bytes = work->bytes / seconds};
}

Json WorkJson(const ReplayReport& report) {
  if (!report.work) return nullptr;
  const auto rate = [](const std::optional<Work>& work) -> Json {
    if (!work) return nullptr;
    return {{"flop_per_s", work->flop}, {"bytes_per_s", work->bytes}};
  };
  return {{"flop", report.work->flop},
          {"bytes", report.work->bytes},
          {"operators_without_shapes", report.work->without_shapes},
          {"original", rate(RateOf(report.work, report.original, true))},
          {"replay", rate(RateOf(report.work, report.replay, report.skipped.empty()))}};
}

// Expected and measured operator times of a composed step.
struct Expectation {
  std::optional<Nanos> expected;
  StepTimes measured;  // without gaps; unknown if operators were skipped
};

Expectation ExpectationOf(const ReplayReport& report) {
  Expectation found{.expected = report.composition->expected()};
  if (report.skipped.empty()) {
    found.measured = report.gaps_passed ? report.without_gaps : report.replay;
  }
  return found;
}

// Returns the deviation of a measured time, as a share of the expected one.
std::optional<double> DeviationOf(const Expectation& found,
                                  const std::optional<TimeSummary>& measured) {
  if (!found.expected || !measured || found.expected->count <= 0) return std::nullopt;
  return static_cast<double>(measured->median.count) / static_cast<double>(found.expected->count) -
         1;
}

Json ExpectationJson(const ReplayReport& report) {
  if (!report.composition) return nullptr;
  const Expectation found = ExpectationOf(report);
  return {{"ms", MsOrNull(found.expected)},
          {"deviation",
           {{"wall", OrNull(DeviationOf(found, found.measured.wall))},
            {"cpu", OrNull(DeviationOf(found, found.measured.cpu))}}},
          {"operators_without_time", report.composition->untimed()}};
}

std::string ExpectationText(const ReplayReport& report) {
  if (!report.composition) return "";
  const Expectation found = ExpectationOf(report);
  std::string text = "composed: operators expected to take ";
  text += found.expected
              ? FormatTime(*found.expected)
              : fmt::format("an unknown time ({} of {} have no recorded time)",
                            report.composition->untimed(), report.composition->operators());
  if (!found.measured.wall) return text + ", but some did not run\n";
  const auto measured = [&](const std::optional<TimeSummary>& time) {
    const std::optional<double> deviation = DeviationOf(found, time);
    return time ? FormatTime(time->median) +
                      (deviation ? fmt::format(" ({})", FormatError(*deviation)) : "")
                : std::string("unknown");
  };
  return text + fmt::format(", took {}, CPU time {}\n", measured(found.measured.wall),
                            measured(found.measured.cpu));
}

std::string WorkText(const ReplayReport& report) {
  if (!report.work || report.work->flop <= 0) return "";
  const auto rate = [](const std::optional<Work>& work) {
    if (!work) return std::string("unknown");
    return fmt::format("{:.3g} GFLOP/s and {:.3g} GB/s", work->flop * 1e-9, work->bytes * 1e-9);
  };
  return fmt::format("work by shapes: {:.3g} GFLOP and {} a step; original {}, replay {}\n",
                     report.work->flop * 1e-9,
                     FormatBytes({static_cast<int64_t>(report.work->bytes)}),
                     rate(RateOf(report.work, report.original, true)),
                     rate(RateOf(report.work, report.replay, report.skipped.empty())));
}

Json KindsJson(const ReplayReport& report) {
  Json rows = Json::array();
  for (const KindSummary& row : report.kinds) {
    Json json = {{"step", row.step},
                 {"steps", row.steps},
                 {"step_share", row.step_share},
                 {"time_share", OrNull(row.time_share)},
                 {"replayed", row.replayed},
                 {"coverage",
                  row.replayed ? Json(ReplayReport::Coverage(row.operators_replayed, row.operators))
                               : Json(nullptr)},
                 {"same_kernels", OrNull(row.same_kernels)}};
    json.update(StepJson(row.replay));
    rows.push_back(std::move(json));
  }
  return rows;
}

Json PeersJson(const ReplayReport& report) {
  const std::optional<EmulatedPeers>& peers = report.peers;
  if (!peers) return nullptr;
  Json json = {{"ranks", peers->size},
               {"present", peers->present},
               {"communications", report.emulated},
               {"latency_us", static_cast<double>(peers->model.latency.count) / 1e3},
               {"bytes_per_second", OrNull(peers->model.bytes_per_second)},
               {"fit", nullptr}};
  if (peers->fit) {
    json["fit"] = {{"communications", peers->fit->communications},
                   {"sizes", peers->fit->sizes},
                   {"typical_error", peers->fit->typical_error}};
  }
  return json;
}

std::string PeersText(const ReplayReport& report) {
  const std::optional<EmulatedPeers>& peers = report.peers;
  if (!peers) return "";
  const CommModel& model = peers->model;
  std::string text = fmt::format(
      "emulated: {} of {} ranks are modelled; {} with them took ", peers->size - peers->present,
      peers->size, FormatCount(static_cast<uint64_t>(report.emulated), "communication"));
  if (!model.bytes_per_second && model.latency == Nanos{}) return text + "no time\n";
  text += FormatTime(model.latency);
  if (model.bytes_per_second) {
    text += fmt::format(" plus their bytes at {}/s",
                        FormatBytes({static_cast<int64_t>(*model.bytes_per_second)}));
  }
  if (!peers->fit) return text + "\n";
  return text + fmt::format(", fitted to {} recorded communications of {} (typical error {})\n",
                            peers->fit->communications, FormatCount(peers->fit->sizes, "size"),
                            FormatShare(peers->fit->typical_error));
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

Json GapsJson(const ReplayReport& report) {
  const auto side = [&](const StepTimes& times) {
    Json json = StepJson(times);
    json["error"] = ErrorJson(report.original, times);
    return json;
  };
  return {{"mode", report.gaps_passed ? "recorded" : "none"},
          {"ms", MsOrNull(report.gaps)},
          {"idle_ms", report.gaps ? Json(report.gap_idle.ms()) : Json(nullptr)},
          {"waits_ms", report.gaps ? Json(report.gap_waits.ms()) : Json(nullptr)},
          {"scale", report.gap_scale},
          {"without", side(report.without_gaps)},
          {"with", side(report.with_gaps)}};
}

std::string StepText(const ReplayReport& report) {
  TextTable table = StepTable("");
  AddStepRows("step", report.original, report.replay, table);
  if (report.part.is_whole() && report.gaps) {
    const StepTimes& other = report.gaps_passed ? report.without_gaps : report.with_gaps;
    AddStepRows(report.gaps_passed ? "without gaps" : "with gaps", report.original, other, table);
  }
  return table.Text("");
}

std::string KernelsText(const std::optional<KernelMatch>& kernels) {
  if (!kernels || !kernels->by_count) return "unknown";
  return FormatShare(*kernels->by_count) +
         (kernels->by_time ? fmt::format(", by time {}", FormatShare(*kernels->by_time)) : "");
}

std::string CoverageText(const ReplayReport& report) {
  std::string text = fmt::format(
      "operators replayed: {} of {} ({}), by time {}; same kernels: {}\n",
      FormatCount(static_cast<uint64_t>(report.operators_replayed)),
      FormatCount(static_cast<uint64_t>(report.operators)), FormatShare(report.coverage()),
      report.time_coverage ? FormatShare(*report.time_coverage) : "unknown",
      KernelsText(report.kernels));
  if (report.device_time && report.device_coverage) {
    text += fmt::format("device work replayed: {} of {} per step\n",
                        FormatShare(*report.device_coverage), FormatTime(*report.device_time));
  }
  if (const auto all = TimeDifference(report.operator_times)) {
    text += fmt::format("operator times differ by {} of their total", FormatShare(*all));
    for (const Phase phase : kPhases) {
      const auto share = TimeDifference(report.operator_times, phase);
      if (share) text += fmt::format(", {} {}", Name(phase), FormatShare(*share));
    }
    text += '\n';
  }
  if (!report.untimed.empty()) {
    text += "recorded time unknown, not included in figures by time:";
    constexpr size_t kShown = 8;
    const size_t shown = std::min(report.untimed.size(), kShown);
    for (size_t i = 0; i < shown; ++i) {
      const NamedCount& row = report.untimed[i];
      text += fmt::format("{} {} {} ×", i == 0 ? "" : ",", row.name, row.count);
    }
    if (shown < report.untimed.size()) {
      text += fmt::format(" and {} more", report.untimed.size() - shown);
    }
    text += '\n';
  }
  text += SkippedText(report);
  return text;
}

std::string RanksText(const ReplayReport& report) {
  if (report.ranks.empty()) return "";
  TextTable table({Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.Row({"rank", "step, CPU time", "step, wall time", "operators replayed"});
  for (const RankSummary& row : report.ranks) {
    table.Row({std::to_string(row.rank), FormatTimes(row.replay.cpu), FormatTimes(row.replay.wall),
               fmt::format("{} of {}", row.operators_replayed, row.operators)});
  }
  std::string text = table.Text();
  for (const RankSummary& row : report.ranks) {
    if (row.rank == report.rank || row.complete) continue;
    text += fmt::format(
        "rank {0} skipped {1}; add --rank {0} for details\n", row.rank,
        FormatCount(static_cast<uint64_t>(row.operators - row.operators_replayed), "operator"));
  }
  return text;
}

std::string KindsText(const ReplayReport& report) {
  if (report.kinds.size() < 2) return "";
  TextTable table(
      {Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.Row({"step", "recorded", "of the steps", "of the time", "replay, CPU time",
             "operators replayed"});
  for (const KindSummary& row : report.kinds) {
    table.Row({std::to_string(row.step), FormatCount(static_cast<uint64_t>(row.steps), "step"),
               FormatShare(row.step_share),
               row.time_share ? FormatShare(*row.time_share) : "unknown",
               FormatTimes(row.replay.cpu),
               fmt::format("{} of {}", row.operators_replayed, row.operators)});
  }
  return "kinds of recorded steps; times are weighted means, counts are sums\n" + table.Text();
}

std::string OperatorsText(const ReplayReport& report) {
  if (!report.per_operator) return "";
  const auto time = [](std::optional<Nanos> value) {
    return value ? FormatTime(*value) : std::string("unknown");
  };
  if (!report.kernels) return "operator times: unknown\n";
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.Row({"operator", "phase", "count", "recorded", "replayed"});
  for (const OperatorTime& row : report.operator_times) {
    table.Row({row.op, std::string(Name(row.phase)), FormatCount(static_cast<uint64_t>(row.count)),
               time(row.recorded), time(row.replayed)});
  }
  return table.Text();
}

}  // namespace

std::pair<std::string, std::string> SkippedKey(std::string_view op, std::string_view reason) {
  std::string kind;
  size_t i = 0;
  while (i < reason.size()) {
    const bool inside_word = !kind.empty() && IsWord(kind.back());
    if (!IsDigit(reason[i]) || inside_word) {
      kind += reason[i++];
      continue;
    }
    if (!kind.empty() && kind.back() == '-') kind.pop_back();
    kind += '#';
    // Digits, also with a fraction, an exponent or another base.
    while (i < reason.size()) {
      const bool exponent = (reason[i] == '+' || reason[i] == '-') && reason[i - 1] == 'e';
      const bool point = reason[i] == '.' && i + 1 < reason.size() && IsDigit(reason[i + 1]);
      if (!IsWord(reason[i]) && !exponent && !point) break;
      ++i;
    }
  }
  return {std::string(op), std::move(kind)};
}

std::string ReplayReportJson(const ReplayReport& report) {
  Json json;
  json["format"] = "etude-replay";
  json["version"] = 1;
  json["etude"] = kVersion;
  json["torch"] = report.torch_version;
  json["notes"] = report.notes;
  json["libraries"] = report.libraries;
  json["source"] = report.source;
  json["job"] = report.job.empty() ? Json(nullptr) : Json(report.job);
  json["rank"] = OrNull(report.rank);
  json["device"] = report.device;
  json["threads"] = report.threads;
  json["seed"] = report.seed;
  json["part"] = PartJson(report.part);
  json["stats"] = ToJson(report.stats);
  json["health"] = ToJson(report.health);
  json["recorded"] = {{"step_ms", MsOrNull(report.recorded_step)},
                      {"operator_share", OrNull(report.operator_share)},
                      {"device_ms", MsOrNull(report.device_time)},
                      {"thread_overlap_ms", MsOrNull(report.thread_overlap)},
                      {"stream_overlap_ms", MsOrNull(report.stream_overlap)}};
  json["operators"] = {{"total", report.operators},
                       {"replayed", report.operators_replayed},
                       {"calls", report.calls}};
  json["coverage"] = {{"ops", report.coverage()},
                      {"time", OrNull(report.time_coverage)},
                      {"device_time", OrNull(report.device_coverage)}};
  Json skipped = Json::array();
  for (const SkippedOperators& row : report.skipped) {
    skipped.push_back({{"op", row.op},
                       {"schema", row.schema},
                       {"reason", row.reason},
                       {"count", row.count},
                       {"time_share", OrNull(row.time_share)},
                       {"stand_in_ms", row.stand_in.ms()}});
  }
  json["skipped"] = std::move(skipped);
  json["original"] = StepJson(report.original);
  json["replay"] = StepJson(report.replay);
  json["replay"]["warmup"] = report.warmup;
  json["replay"]["minor_faults"] = OrNull(report.minor_faults);
  json["replay"]["stolen_share"] = OrNull(report.stolen_share);
  json["error"] = ErrorJson(report.original, report.replay);
  json["expected"] = ExpectationJson(report);
  json["gaps"] = GapsJson(report);
  json["same_kernels"] = report.kernels ? OrNull(report.kernels->by_count) : Json(nullptr);
  json["kernels"] = KernelsJson(report.kernels);
  json["operator_time_difference"] = DifferenceJson(report.operator_times);
  json["untimed"] = CountsJson(report.untimed);
  json["replaced_by_parts"] = CountsJson(report.replaced_by_parts);
  json["coerced"] = {{"shapes", report.coerced}, {"assumed_values", report.assumed_values}};
  json["values"] = {{"non_finite_tensors", report.non_finite},
                    {"denormal_tensors", report.denormal}};
  json["memory"] = {
      {"recorded_minor_faults", OrNull(report.recorded_faults)},
      {"given_back_bytes", report.given_back_bytes},
      {"outside_bytes", report.outside_bytes},
      {"peak_bytes", report.peak_bytes},
      {"copied_bytes", report.copied_bytes},
      {"resident_before_steps_bytes",
       report.resident_before_steps ? Json(report.resident_before_steps->count) : Json(nullptr)},
      {"growth_bytes", report.memory_growth ? Json(report.memory_growth->count) : Json(nullptr)},
      {"recorded_growth_bytes",
       report.recorded_memory_growth ? Json(report.recorded_memory_growth->count) : Json(nullptr)}};
  json["work"] = WorkJson(report);
  json["setup_ms"] = {{"plan", report.setup.ms()},
                      {"trial", report.trial.ms()},
                      {"fill", report.fill.ms()},
                      {"first_step", report.first_step.ms()}};
  json["per_operator"] = OperatorsJson(report);
  json["step_kinds"] = KindsJson(report);
  json["ranks"] = RanksJson(report);
  json["peers"] = PeersJson(report);
  json["scale"] = nullptr;
  if (!report.scale.empty()) {
    json["scale"] = {{"factors", report.scale}, {"slowdown", report.slowdown}};
  }
  return JsonText(json);
}

bool IsComplete(const std::vector<SkippedOperators>& skipped) {
  double share = 0;
  for (const SkippedOperators& row : skipped) {
    if (row.stand_in_asked) continue;
    if (!row.time_share || IsCommOperator(row.op)) return false;
    share += *row.time_share;
  }
  return share < kNegligibleShare;
}

std::string SkippedText(const ReplayReport& report) {
  TextTable skipped({Align::kLeft, Align::kRight, Align::kRight, Align::kLeft});
  for (const SkippedOperators& row : report.skipped) {
    skipped.Row({row.op, fmt::format("{} ×", row.count),
                 row.time_share ? FormatShare(*row.time_share) : "time unknown",
                 row.reason + (row.stand_in > Nanos{}
                                   ? fmt::format("; stand-in{}: waits {} per step instead",
                                                 report.gaps_passed ? "" : " with --gaps recorded",
                                                 FormatTime(row.stand_in))
                                   : "")});
  }
  return skipped.empty() ? ""
                         : "skipped (operator, count, share of time, reason)\n" + skipped.Text();
}

// Describes memory added by steps, compared with the program's.
std::string GrowthText(const ReplayReport& report) {
  if (!report.memory_growth) return "";
  const auto& recorded = report.recorded_memory_growth;
  if (!recorded || recorded->count == 0) {
    return fmt::format("memory added by steps: {}\n", FormatBytes(*report.memory_growth));
  }
  const double ratio =
      static_cast<double>(report.memory_growth->count) / static_cast<double>(recorded->count);
  return fmt::format("memory added by steps: {}, recorded {} ({})\n",
                     FormatBytes(*report.memory_growth), FormatBytes(*recorded),
                     FormatError(ratio - 1));
}

// Omits overlaps that are unknown or below 1 % of the step.
std::string OverlapText(const ReplayReport& report) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view what, std::optional<Nanos> time) {
    const int64_t least = report.recorded_step.value_or(Nanos{}).count / 100;
    if (!time || time->count <= least) return;
    parts.push_back(fmt::format("{} for {}", what, FormatTime(*time)));
  };
  add("operators of several threads", report.thread_overlap);
  add("device work of several streams", report.stream_overlap);
  if (parts.empty()) return "";
  return fmt::format("the recorded step overlapped {}; a replay runs everything sequentially\n",
                     fmt::join(parts, ", and "));
}

std::string ReplayReportText(const ReplayReport& report) {
  std::string text = fmt::format(
      "{}{} on {}, {}, torch {}\n", report.source,
      report.rank ? fmt::format(" rank {}", *report.rank) : "", report.device,
      FormatCount(static_cast<uint64_t>(report.threads), "thread"), report.torch_version);
  if (!report.part.is_whole()) text += "part of the step: no comparison with the original\n";
  if (!report.scale.empty()) {
    text += fmt::format("emulated: {}", report.scale);
    if (report.slowdown != 1) {
      text += fmt::format(
          "; times are divided by {:.3g}, the factor by which emulated steps were slower",
          report.slowdown);
    }
    text += '\n';
  }
  text += PeersText(report);
  text += StepText(report);
  if (report.operator_share && report.part.is_whole())
    text += OperatorShareText(*report.operator_share);
  if (report.part.is_whole()) text += OverlapText(report);
  text += ExpectationText(report);
  text += CoverageText(report);
  if (report.coerced > 0) {
    text += fmt::format("results resized to the recorded shape: {}\n",
                        FormatCount(static_cast<uint64_t>(report.coerced), "operator"));
  }
  if (report.assumed_values > 0) {
    text += fmt::format("{} {} missing in the trace; defaults used\n",
                        FormatCount(static_cast<uint64_t>(report.assumed_values), "argument"),
                        report.assumed_values == 1 ? "is" : "are");
  }
  if (report.non_finite > 0) {
    text +=
        fmt::format("tensors with infinities or NaN after the last step: {}\n", report.non_finite);
  }
  const auto faults = [](auto count) {
    return count ? FormatCount(static_cast<uint64_t>(*count)) : std::string("unknown");
  };
  text += fmt::format("memory: {} of outside tensors, {} at the peak; {} page faults per step{}\n",
                      FormatBytes({report.outside_bytes}), FormatBytes({report.peak_bytes}),
                      faults(report.minor_faults),
                      report.recorded_faults
                          ? fmt::format(", recorded {}", faults(report.recorded_faults))
                          : std::string());
  text += GrowthText(report);
  text += WorkText(report) + KindsText(report) + RanksText(report) + OperatorsText(report);
  if (report.stolen_share.value_or(0) > kStolenShareMax) {
    text += fmt::format(
        "other processes used the processor for {} of the replay's time: do not trust wall times, "
        "and trust CPU times only roughly\n",
        FormatShare(*report.stolen_share));
  }
  return text + ShortText(report.health);
}

}  // namespace etude
