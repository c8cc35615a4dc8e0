#include "src/cli/app/commands.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/cli/record/compare_certificates.h"
#include "src/cli/record/compare_run.h"
#include "src/formats/job/capture_folder.h"
#include "src/jobs/edits/compared_steps.h"
#include "src/report/certificate/replay_comparison.h"
#include "src/report/tables/operator_share.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

std::string ShareText(const std::optional<double>& share) {
  return share ? FormatShare(*share) : "unknown";
}

std::string ComparisonText(const RankComparison& rank) {
  TextTable table = StepTable(fmt::format("rank {}", rank.rank));
  AddStepRows("step", rank.original, rank.replay, table);
  std::string notes;
  for (const std::string& note : rank.notes) notes += "as recorded: " + note + "\n";
  return table.Text("") +
         fmt::format("operators replayed: {} by count, {} by time; same kernels: {}\n",
                     ShareText(rank.coverage_ops), ShareText(rank.coverage_time),
                     ShareText(rank.same_kernels)) +
         (rank.operator_time_difference ? fmt::format("times of operators differ by {} of all\n",
                                                      FormatShare(*rank.operator_time_difference))
                                        : "") +
         (rank.operator_share ? OperatorShareText(*rank.operator_share) : "") + notes;
}

// The mean of several kinds has no quartiles.
Json SummaryJson(const std::optional<TimeSummary>& summary, bool is_mean) {
  if (!summary) return nullptr;
  Json json = {{"median", summary->median.ms()}, {"p25", nullptr}, {"p75", nullptr}};
  if (is_mean) return json;
  json["p25"] = summary->p25.ms();
  json["p75"] = summary->p75.ms();
  return json;
}

Json StepJson(const StepTimes& times) {
  return {{"wall", SummaryJson(times.wall, times.is_mean)},
          {"cpu", SummaryJson(times.cpu, times.is_mean)}};
}

Json ComparisonJson(const RankComparison& rank) {
  Json json = {{"rank", rank.rank}};
  json["original"]["step_ms"] = StepJson(rank.original);
  json["replay"]["step_ms"] = StepJson(rank.replay);
  json["error"] = ErrorJson(rank.original, rank.replay);
  json["coverage"] = {{"ops", OrNull(rank.coverage_ops)}, {"time", OrNull(rank.coverage_time)}};
  json["same_kernels"] = OrNull(rank.same_kernels);
  json["operator_time_difference"] = OrNull(rank.operator_time_difference);
  json["skipped"] = rank.skipped;
  json["recorded"] = {{"operator_share", OrNull(rank.operator_share)}, {"notes", rank.notes}};
  return json;
}

class CompareCommand : public Command {
 public:
  std::string_view name() const override { return "compare"; }
  std::string_view summary() const override {
    return "compare the original step of a capture with its replay";
  }

  void Declare(Options& options) override {
    options.Positionals("dir", &paths_, "capture folder, or folder of an edited or simulated job",
                        /*required=*/false);
    options.Value("--tolerance", &tolerance_, "SHARE",
                  "max error: exit code 1 if one exceeds it, as 8% or 0.08");
    options.Choice("--clock", &clock_, {"cpu", "wall"}, "clock that --tolerance applies to");
    options.Flag("--run", &by_running_,
                 "run the program and its replay now, alternating step by step");
    options.Value("--benchmark", &run_.benchmark, "PROGRAM",
                  "with --run: compare a program written by `etude benchmark`, FOLDER/benchmark.py "
                  "or FOLDER/build/benchmark, instead of the replay");
    options.Value("--python", &run_.python, "PYTHON",
                  "with --benchmark: Python that runs it, or starts its ranks (default: the "
                  "program's, else python3)");
    options.Value("--pairs", &run_.pairs, "N", "with --run: number of measured pairs of steps",
                  {.least = 1, .most = 100'000});
    options.Value(
        "--starts", &run_.starts, "N",
        "with --run: number of times to start program and replay; the pairs are divided among them",
        {.least = 1, .most = 1000});
    options.Choice(
        "--until", &run_.until, {"decided"},
        "with --run: add pairs and starts until no bar is undetermined, up to ten times --pairs");
    options.Value("--device", &run_.device, "DEVICE",
                  "with --run: device of the replay or the benchmark: cpu, cuda:N or the name of "
                  "another PyTorch device (default: by the trace; cpu for a benchmark)");
    options.Value("--rank", &run_.rank, "N",
                  "with --run: rank whose steps are timed (default: the first)", {.least = 0});
    options.Value("--warmup", &run_.warmup, "N",
                  "with --run: warm-up steps of the program before the pairs",
                  {.least = 1, .most = 1'000'000});
    options.Value("--lead", &run_.lead, "N",
                  "with --run: unmeasured steps before each measured step (default: as many as "
                  "take 50 ms, at most 4)",
                  {.least = 0, .most = 1'000'000});
    options.Values(
        "--bar", &run_.bars, "NAME=SHARE",
        "with --run: max error of a metric, such as wall_time=8%; NAME=none for no verdict");
    options.Value("--timeout", &run_.timeout_s, "SECONDS", "with --run: max seconds of a step",
                  {.least = 1, .most = 1'000'000});
    options.Value("--seed", &run_.seed, "N", "with --run: seed for the order within pairs",
                  {.least = 0});
    options.Choice("--gaps", &run_.gaps, {"recorded", "none"},
                   "with --run: gaps between operators in the replay: as recorded, or none");
    options.Flag("--pin", &run_.pin,
                 "with --run: pin each rank of the replay to its own share of the processors; use "
                 "it if the program pins its ranks");
    options.Flag("--experimental", &run_.experimental,
                 "with --run: allow devices other than CPU and CUDA, where replay is untested, and "
                 "read GPU sensors even if the program uses no GPU");
    options.Values("--library", &run_.libraries, "FILE",
                   "with --run: load a shared library of operators into the replay");
    options.Flag("--finish", &run_.finish,
                 "with --run: let the program run to its end after the last pair");
    options.Outputs("--certificate", &certificates_, "FILE",
                    "with --run: write a certificate to FILE, as a page if it ends in .html, else "
                    "as JSON; without --run: show this certificate, or compare two",
                    {".json", ".html"});
    options.Flag("--trust", &run_.trust,
                 "with --run: run the command in job.json even if this user did not record the "
                 "folder on this machine");
    options.Flag("--keep-paths", &run_.keep_paths,
                 "with --run: keep folders in the paths of the certificate's commands");
    options.Outputs("-o,--output", &outputs_, "FILE",
                    "with --certificate, without --run: write the result to FILE, as a page if it "
                    "ends in .html, else as JSON",
                    {".json", ".html"});
    options.Flag("--json", &run_.json, "print JSON");
    options.After("COMMAND ...", &run_.command,
                  "with --run: program and arguments (default: as recorded)");
  }

  Result<ExitCode> Run(const Console& console) override {
    if (!by_running_ && !certificates_.empty()) return Certificates(console);
    if (!outputs_.empty()) {
      return MakeError(ErrorCode::kUsage,
                       "compare: -o requires --certificate without --run; with --run, "
                       "--certificate FILE writes the certificate");
    }
    if (paths_.empty()) {
      return MakeError(ErrorCode::kUsage, "compare: missing argument 'dir': a capture folder");
    }
    if (paths_.size() > 1) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("compare: unexpected argument '{}'", paths_[1]));
    }
    run_.path = paths_.front();
    if (by_running_) {
      run_.certificates = certificates_;
      if (!tolerance_) return CompareByRunning(run_, console);
      return MakeError(ErrorCode::kUsage,
                       "compare: --tolerance cannot be combined with --run; use --bar NAME=SHARE");
    }
    if (run_ != CompareRunOptions{.path = run_.path, .json = run_.json}) {
      return MakeError(ErrorCode::kUsage,
                       "compare: a command and all options except --tolerance, --clock and --json "
                       "require --run");
    }
    return CompareFiles(console);
  }

 private:
  Result<ExitCode> Certificates(const Console& console) const {
    if (tolerance_ || run_ != CompareRunOptions{.json = run_.json}) {
      return MakeError(ErrorCode::kUsage,
                       "compare: for certificates, all options except -o and --json require --run");
    }
    std::vector<std::string> paths = certificates_;
    paths.insert(paths.end(), paths_.begin(), paths_.end());
    return CompareCertificates({.paths = paths, .outputs = outputs_, .json = run_.json}, console);
  }

  Result<ExitCode> CompareFiles(const Console& console) const {
    std::optional<double> tolerance;
    if (tolerance_) {
      ETUDE_ASSIGN_OR_RETURN(tolerance, ParseShare("--tolerance", *tolerance_));
    }
    if (!IsFolder(run_.path)) {
      return NoFolder(run_.path);
    }
    ETUDE_ASSIGN_OR_RETURN(const std::optional<ComparedSteps> steps,
                           ReadComparedSteps(run_.path, console.context()));
    if (steps) return CompareSteps(*steps, tolerance, console);
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder,
                           ListCaptureFolder(run_.path, console.context()));
    Json ranks = Json::array();
    std::string text;
    bool within = true;
    std::vector<RankComparison> comparisons;
    for (const CaptureRank& rank : folder.ranks) {
      ETUDE_ASSIGN_OR_RETURN(comparisons.emplace_back(), CompareWithReplay(folder, rank));
    }
    ETUDE_RETURN_IF_ERROR(CheckReplayedTogether(folder, comparisons));
    for (const RankComparison& comparison : comparisons) {
      text += ComparisonText(comparison);
      ranks.push_back(ComparisonJson(comparison));
      const auto clock = clock_ == "cpu" ? &StepTimes::cpu : &StepTimes::wall;
      const auto error = RelativeError(comparison.original.*clock, comparison.replay.*clock);
      if (tolerance && (!error || std::abs(*error) > *tolerance)) within = false;
    }
    if (run_.json) {
      Json json = {{"format", "etude-compare"}, {"version", 1}};
      json["tolerance"] = OrNull(tolerance);
      json["within"] = tolerance ? Json(within) : Json(nullptr);
      json["ranks"] = std::move(ranks);
      text = JsonText(json);
    } else if (tolerance) {
      text += fmt::format("{} time {} {}\n", clock_ == "cpu" ? "CPU" : "wall",
                          within ? "within" : "NOT within", FormatShare(*tolerance));
    }
    console.Print(text);
    return within ? ExitCode::kOk : ExitCode::kNo;
  }

  // Shows the recorded, simulated and measured steps of an edited job, or of a simulated one.
  Result<ExitCode> CompareSteps(const ComparedSteps& steps, const std::optional<double>& tolerance,
                                const Console& console) const {
    const Table& table = steps.steps;
    const auto column = std::ranges::find(table.columns, "error_of_job", &Table::Column::key);
    const auto index = static_cast<size_t>(column - table.columns.begin());
    bool is_measured = false;
    bool within = true;
    for (const std::vector<Cell>& row : table.rows) {
      const auto* error = std::get_if<double>(&row[index]);
      if (error == nullptr) continue;
      is_measured = true;
      within = within && (!tolerance || std::abs(*error) <= *tolerance);
    }
    within = within && (!tolerance || is_measured);
    std::string text;
    if (run_.json) {
      Json json = {{"format", "etude-compare-steps"}, {"version", 1}};
      json["tolerance"] = OrNull(tolerance);
      json["within"] = tolerance ? Json(within) : Json(nullptr);
      for (const Table& one : TablesOf(steps)) json[one.key] = ToJson(one);
      text = JsonText(json);
    } else {
      for (const EditLine& edit : steps.edits) {
        text += fmt::format("{}: {} ({})\n", edit.edit, edit.text, edit.certainty);
      }
      text += ToText(table, /*most_rows=*/0);
      if (tolerance) {
        text += fmt::format("simulated step {} {} of the measured one{}\n",
                            within ? "within" : "NOT within", FormatShare(*tolerance),
                            is_measured ? "" : ", which is unknown");
      }
    }
    console.Print(text);
    return within ? ExitCode::kOk : ExitCode::kNo;
  }

  CompareRunOptions run_;
  std::vector<std::string> paths_;
  std::vector<std::string> certificates_;
  std::vector<std::string> outputs_;
  bool by_running_ = false;
  std::optional<std::string> tolerance_;
  std::string clock_ = "cpu";
};

}  // namespace

std::unique_ptr<Command> MakeCompareCommand() { return std::make_unique<CompareCommand>(); }

}  // namespace etude
