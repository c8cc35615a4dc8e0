#include "src/cli/compare.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/formats/capture_folder.h"
#include "src/report/format.h"
#include "src/report/operator_share.h"
#include "src/report/replay_comparison.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

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
    if (!IsFolder(path_)) {
      return BadInput(path_ + ": expected a capture folder");
    }
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(path_, console.context()));
    Json ranks = Json::array();
    std::string text;
    bool within = true;
    for (const CaptureRank& rank : folder.ranks) {
      ETUDE_ASSIGN_OR_RETURN(const RankComparison comparison, CompareWithReplay(folder, rank));
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
