#include "src/cli/compare.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/analysis/time_summary.h"
#include "src/formats/capture_folder.h"
#include "src/report/format.h"
#include "src/report/operator_share.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kReplayFormat = "etude-replay";

// Original and replay of one rank, by one clock.
struct ClockPair {
  std::optional<TimeSummary> original;
  std::optional<TimeSummary> replay;

  std::optional<double> error() const { return RelativeError(original, replay); }
};

struct RankComparison {
  int64_t rank = 0;
  ClockPair wall;
  ClockPair cpu;
  std::optional<double> coverage_ops;
  std::optional<double> coverage_time;
  std::optional<double> same_kernels;
  std::optional<double> operator_share;
  int64_t skipped = 0;  // kinds of operators
};

std::optional<double> Number(const Json& json, const char* pointer) {
  const auto path = Json::json_pointer(pointer);
  if (!json.contains(path) || !json.at(path).is_number()) return std::nullopt;
  return json.at(path).get<double>();
}

// A summary in milliseconds, as `etude replay --json` writes it.
std::optional<TimeSummary> SummaryOf(const Json& json, const std::string& pointer) {
  const auto time = [&](const char* name) -> std::optional<Nanos> {
    const auto ms = Number(json, (pointer + "/" + name).c_str());
    if (!ms) return std::nullopt;
    return Nanos{std::llround(*ms * 1e6)};
  };
  const auto median = time("median"), p25 = time("p25"), p75 = time("p75");
  if (!median || !p25 || !p75) return std::nullopt;
  return TimeSummary{.median = *median, .p25 = *p25, .p75 = *p75};
}

Result<RankComparison> CompareRank(const CaptureFolder& folder, const CaptureRank& rank) {
  const std::string path = folder.File(fmt::format("replay.{}.json", rank.number()));
  std::ifstream file(path);
  if (!file) {
    return BadInput(fmt::format(
        "{}: not found; `etude replay {}{}` writes it", path, folder.path,
        folder.ranks.size() > 1 ? fmt::format(" --rank {}", rank.number()) : std::string()));
  }
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("format", Json()) != kReplayFormat) {
    return BadInput(fmt::format("{}: expected JSON with \"format\": \"{}\"", path, kReplayFormat));
  }
  if (const auto part = json.find("part"); part != json.end() && !part->is_null()) {
    return BadInput(
        fmt::format("{}: a replay of a part of the step (--label, --only, --skip), "
                    "which the original's time is no measure for",
                    path));
  }
  const JobRank* job = folder.job_rank(rank);
  if (job == nullptr) {
    return BadInput(fmt::format("{}: job.json has no facts of rank {}: nothing to compare with",
                                folder.path, rank.number()));
  }
  RankComparison comparison{.rank = rank.number(),
                            .coverage_ops = Number(json, "/coverage/ops"),
                            .coverage_time = Number(json, "/coverage/time"),
                            .same_kernels = Number(json, "/same_kernels"),
                            .operator_share = Number(json, "/recorded/operator_share")};
  if (const auto it = json.find("skipped"); it != json.end() && it->is_array()) {
    comparison.skipped = static_cast<int64_t>(it->size());
  }
  comparison.wall.replay = SummaryOf(json, "/replay/step_ms/wall");
  comparison.cpu.replay = SummaryOf(json, "/replay/step_ms/cpu");
  std::vector<Nanos> wall, cpu;
  for (const StepTime& step : job->ComparableSteps()) {
    wall.push_back(step.wall);
    cpu.push_back(step.cpu);
  }
  if (!wall.empty()) {
    comparison.wall.original = Summarise(std::move(wall));
    comparison.cpu.original = Summarise(std::move(cpu));
  }
  return comparison;
}

std::string TimesText(const std::optional<TimeSummary>& summary) {
  if (!summary) return "unknown";
  return fmt::format("{} [{}, {}]", FormatTime(summary->median), FormatTime(summary->p25),
                     FormatTime(summary->p75));
}

std::string ErrorText(const std::optional<double>& error) {
  return error ? fmt::format("{:+.1f} %", *error * 100) : "unknown";
}

std::string ShareText(const std::optional<double>& share) {
  return share ? FormatShare(*share) : "unknown";
}

std::string ComparisonText(const RankComparison& rank) {
  using enum TextTable::Align;
  TextTable table({kLeft, kRight, kRight, kRight});
  table.Row(
      {fmt::format("rank {}", rank.rank), "original [p25, p75]", "replay [p25, p75]", "error"});
  table.Row({"step, CPU time", TimesText(rank.cpu.original), TimesText(rank.cpu.replay),
             ErrorText(rank.cpu.error())});
  table.Row({"step, wall time", TimesText(rank.wall.original), TimesText(rank.wall.replay),
             ErrorText(rank.wall.error())});
  return table.Text("") +
         fmt::format("operators replayed: {} by count, {} by time; same kernels: {}\n",
                     ShareText(rank.coverage_ops), ShareText(rank.coverage_time),
                     ShareText(rank.same_kernels)) +
         (rank.operator_share ? OperatorShareText(*rank.operator_share) : "");
}

Json SummaryJson(const std::optional<TimeSummary>& summary) {
  if (!summary) return nullptr;
  return {{"median", summary->median.ms()}, {"p25", summary->p25.ms()}, {"p75", summary->p75.ms()}};
}

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json ComparisonJson(const RankComparison& rank) {
  Json json = {{"rank", rank.rank}};
  json["original"]["step_ms"] = {{"wall", SummaryJson(rank.wall.original)},
                                 {"cpu", SummaryJson(rank.cpu.original)}};
  json["replay"]["step_ms"] = {{"wall", SummaryJson(rank.wall.replay)},
                               {"cpu", SummaryJson(rank.cpu.replay)}};
  json["error"] = {{"wall", OrNull(rank.wall.error())}, {"cpu", OrNull(rank.cpu.error())}};
  json["coverage"] = {{"ops", OrNull(rank.coverage_ops)}, {"time", OrNull(rank.coverage_time)}};
  json["same_kernels"] = OrNull(rank.same_kernels);
  json["skipped"] = rank.skipped;
  json["recorded"] = {{"operator_share", OrNull(rank.operator_share)}};
  return json;
}

// "8%" or "0.08".
Result<double> ParseTolerance(std::string_view text) {
  const bool percent = text.ends_with('%');
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !(value >= 0) ||
      !std::isfinite(value)) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("--tolerance: found '{}', expected a share such as 8% or 0.08", text));
  }
  return percent ? value / 100 : value;
}

class CompareCommand : public Command {
 public:
  std::string_view name() const override { return "compare"; }
  std::string_view summary() const override {
    return "put the original step of a capture beside its replay";
  }

  void Declare(Options& options) override {
    options.Positional("dir", &path_, "a capture folder that was replayed");
    options.Value("--tolerance", &tolerance_, "SHARE",
                  "the answer is no (exit code 1) if an error exceeds this: 8% or 0.08");
    options.Choice("--clock", &clock_, {"cpu", "wall"}, "the time that --tolerance is about");
    options.Flag("--json", &json_, "print JSON");
  }

  Result<ExitCode> Run(const Console& console) override {
    std::optional<double> tolerance;
    if (tolerance_) {
      ETUDE_ASSIGN_OR_RETURN(tolerance, ParseTolerance(*tolerance_));
    }
    if (!std::filesystem::is_directory(path_)) {
      return BadInput(path_ + ": expected a capture folder");
    }
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(path_, console.context()));
    Json ranks = Json::array();
    std::string text;
    bool within = true;
    for (const CaptureRank& rank : folder.ranks) {
      ETUDE_ASSIGN_OR_RETURN(const RankComparison comparison, CompareRank(folder, rank));
      text += ComparisonText(comparison);
      ranks.push_back(ComparisonJson(comparison));
      const auto error = (clock_ == "cpu" ? comparison.cpu : comparison.wall).error();
      if (tolerance && (!error || std::abs(*error) > *tolerance)) within = false;
    }
    if (json_) {
      Json json = {{"format", "etude-compare"}, {"version", 1}};
      json["tolerance"] = OrNull(tolerance);
      json["within"] = tolerance ? Json(within) : Json(nullptr);
      json["ranks"] = std::move(ranks);
      text = json.dump(2) + "\n";
    } else if (tolerance) {
      text += fmt::format("{} time {} {}\n", clock_ == "cpu" ? "CPU" : "wall",
                          within ? "within" : "NOT within", FormatShare(*tolerance));
    }
    console.Print(text);
    return within ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  std::string path_;
  std::optional<std::string> tolerance_;
  std::string clock_ = "cpu";
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCompareCommand() { return std::make_unique<CompareCommand>(); }

}  // namespace etude
