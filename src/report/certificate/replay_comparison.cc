#include "src/report/certificate/replay_comparison.h"

#include <cmath>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/text/bounded_json.h"
#include "src/formats/io/byte_source.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kReplayFormat = "etude-replay";

std::optional<double> Number(const Json& json, const char* pointer) {
  const auto path = Json::json_pointer(pointer);
  if (!json.contains(path) || !json.at(path).is_number()) return std::nullopt;
  return json.at(path).get<double>();
}

// Reads a summary in milliseconds, as written by `etude replay --json`.
std::optional<TimeSummary> SummaryOf(const Json& json, const std::string& pointer) {
  const auto time = [&](const char* name) -> std::optional<Nanos> {
    const auto ms = Number(json, (pointer + "/" + name).c_str());
    constexpr double kMostMs = 9e12;  // maximum for whole nanoseconds
    if (!ms || !(*ms >= 0) || *ms > kMostMs) return std::nullopt;
    return Nanos{std::llround(*ms * 1e6)};
  };
  const auto median = time("median"), p25 = time("p25"), p75 = time("p75");
  if (!median || !p25 || !p75) return std::nullopt;
  return TimeSummary{.median = *median, .p25 = *p25, .p75 = *p75};
}

}  // namespace

std::string ReplayFile(const CaptureFolder& folder, const CaptureRank& rank) {
  return folder.File(fmt::format("replay.{}.json", rank.number()));
}

Result<RankComparison> CompareWithReplay(const CaptureFolder& folder, const CaptureRank& rank) {
  const std::string path = ReplayFile(folder, rank);
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  std::ifstream file(path);
  if (!file) {
    return BadInput(fmt::format("{}: not found; `etude replay {}{}` writes it", path, folder.path,
                                folder.ranks.size() > 1 ? " --ranks all" : ""));
  }
  const Json json = ParseBounded<Json>(file);
  if (!json.is_object() || json.value("format", Json()) != kReplayFormat) {
    return BadInput(fmt::format("{}: expected JSON with \"format\": \"{}\"", path, kReplayFormat));
  }
  if (const auto part = json.find("part"); part != json.end() && !part->is_null()) {
    return BadInput(
        fmt::format("{}: found a replay of part of the step (--label, --only, --skip), which "
                    "cannot be compared with the original's time",
                    path));
  }
  // Replays by earlier versions lack the id.
  if (const Json id = json.value("job", Json());
      id.is_string() && folder.job && id != folder.job->id) {
    return BadInput(
        fmt::format("{}: found the replay of another recording; `etude replay {}` replays this one",
                    path, folder.path));
  }
  const JobRank* job = folder.job_rank(rank);
  if (job == nullptr) {
    return BadInput(fmt::format("{}: job.json lacks rank {}, so there is nothing to compare with",
                                folder.path, rank.number()));
  }
  RankComparison comparison{
      .rank = rank.number(),
      .coverage_ops = Number(json, "/coverage/ops"),
      .coverage_time = Number(json, "/coverage/time"),
      .same_kernels = Number(json, "/same_kernels"),
      .operator_time_difference = Number(json, "/operator_time_difference/all"),
      .operator_share = Number(json, "/recorded/operator_share")};
  if (const auto it = json.find("skipped"); it != json.end() && it->is_array()) {
    comparison.skipped = static_cast<int64_t>(it->size());
  }
  if (const auto it = json.find("ranks"); it != json.end() && it->is_array()) {
    for (const Json& row : *it) {
      if (const auto number = Number(row, "/rank")) {
        comparison.together.push_back(std::llround(*number));
      }
    }
  }
  // A replay of several kinds of steps has means over them.
  const auto kinds = json.find("step_kinds");
  const bool is_mix = kinds != json.end() && kinds->is_array() && kinds->size() > 1;
  comparison.original =
      is_mix ? MeanOfSteps(job->StepsOfRecordedKinds()) : SummariseSteps(job->ComparableSteps());
  comparison.notes = job->notes;
  comparison.replay = {.wall = SummaryOf(json, "/replay/step_ms/wall"),
                       .cpu = SummaryOf(json, "/replay/step_ms/cpu")};
  return comparison;
}

Status CheckReplayedTogether(const CaptureFolder& folder, std::span<const RankComparison> ranks) {
  const auto how = [](const RankComparison& rank) {
    return rank.together.empty()
               ? std::string("alone")
               : fmt::format("together with ranks {}", fmt::join(rank.together, ", "));
  };
  for (const RankComparison& rank : ranks) {
    if (rank.together == ranks.front().together) continue;
    return BadInput(fmt::format(
        "{}: rank {} was replayed {}, but rank {} {}; replay all with one command, `etude replay "
        "{} --ranks all`",
        folder.path, ranks.front().rank, how(ranks.front()), rank.rank, how(rank), folder.path));
  }
  return {};
}

std::vector<Table> ReplayTables(const std::vector<RankComparison>& ranks) {
  Table times{.key = "replay",
              .title = "time of a step, original and replayed",
              .columns = {{"rank", "rank", Unit::kText},
                          {"clock", "clock", Unit::kText},
                          {"original_ns", "original", Unit::kTime},
                          {"original_p25_ns", "p25", Unit::kTime},
                          {"original_p75_ns", "p75", Unit::kTime},
                          {"replay_ns", "replay", Unit::kTime},
                          {"replay_p25_ns", "p25", Unit::kTime},
                          {"replay_p75_ns", "p75", Unit::kTime},
                          {"error", "error", Unit::kChange}},
              .rows = {}};
  Table coverage{.key = "coverage",
                 .title = "coverage of the replay",
                 .columns = {{"rank", "rank", Unit::kText},
                             {"operators", "operators, by count", Unit::kShare},
                             {"operator_time", "by time", Unit::kShare},
                             {"same_kernels", "same kernels", Unit::kShare},
                             {"operator_time_difference", "operator times differ by", Unit::kShare},
                             {"operator_share", "time of operators in the step", Unit::kShare},
                             {"skipped", "kinds skipped", Unit::kCount}},
                 .rows = {}};
  for (const RankComparison& rank : ranks) {
    const auto add = [&](std::string clock, std::optional<TimeSummary> StepTimes::*clock_times) {
      const auto &original = rank.original.*clock_times, &replay = rank.replay.*clock_times;
      std::vector<Cell> cells = {rank.rank, std::move(clock)};
      const auto add_side = [&](const std::optional<TimeSummary>& summary, bool is_mean) {
        const bool has_quartiles = summary && !is_mean;
        cells.push_back(summary ? Cell(summary->median.count) : Cell());
        cells.push_back(has_quartiles ? Cell(summary->p25.count) : Cell());
        cells.push_back(has_quartiles ? Cell(summary->p75.count) : Cell());
      };
      add_side(original, rank.original.is_mean);
      add_side(replay, rank.replay.is_mean);
      cells.push_back(ToCell(RelativeError(original, replay)));
      times.rows.push_back(std::move(cells));
    };
    add("CPU", &StepTimes::cpu);
    add("wall", &StepTimes::wall);
    coverage.rows.push_back({rank.rank, ToCell(rank.coverage_ops), ToCell(rank.coverage_time),
                             ToCell(rank.same_kernels), ToCell(rank.operator_time_difference),
                             ToCell(rank.operator_share), rank.skipped});
  }
  return {std::move(times), std::move(coverage)};
}

}  // namespace etude
