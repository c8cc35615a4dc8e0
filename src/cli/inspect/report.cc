#include "src/cli/app/commands.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/each_rank.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/read_trace.h"
#include "src/jobs/edits/compared_steps.h"
#include "src/report/certificate/run_comparison_json.h"
#include "src/report/page/job_page.h"
#include "src/report/text/format.h"
#include "src/report/text/health_output.h"
#include "src/report/text/json_output.h"
#include "src/transform/read_job.h"

namespace etude {
namespace {

// Inputs of one rank: its most complete trace, and the one with the best times.
struct Input {
  size_t job = 0;
  RankInput trace;
  std::optional<RankInput> timed;  // nullopt: the same trace
};

Result<RankFigures> ReadFigures(const Input& input, const ReadOptions& options, size_t most_events,
                                const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadRank(input.trace, options, context));
  std::optional<Trace> timed;
  if (input.timed) {
    ETUDE_ASSIGN_OR_RETURN(timed, ReadRank(*input.timed, options, context));
  }
  RankFigures figures = FiguresOf(trace, timed ? &*timed : nullptr, most_events);
  if (input.trace.rank) figures.rank = input.trace.rank;
  figures.path = input.trace.path;
  return figures;
}

class ReportCommand : public Command {
 public:
  std::string_view name() const override { return "report"; }
  std::string_view summary() const override {
    return "write an HTML page about traces or jobs: verdict, figures, charts, timeline";
  }

  void Declare(Options& options) override {
    options.Positionals("paths", &paths_,
                        "traces in any format, capture folders (all their ranks), or - for stdin");
    options.Output("-o,--output", &output_, "FILE", "HTML page to write", {".html"});
    options.Value("--title", &title_, "TEXT", "title of the page");
    options.Value("--events", &events_, "N",
                  "max events in the timeline of all ranks; more are grouped",
                  {.least = 1000, .most = 5'000'000});
    options.Jobs(&jobs_, "traces");
    options.Flag("--json", &json_, "print the page's data as JSON");
  }

  Result<ExitCode> Run(const Console& console) override {
    if (output_.empty() && !json_) {
      return MakeError(ErrorCode::kUsage,
                       "report: missing -o FILE; or print the page's data with --json");
    }
    if (output_ == "-" && json_) {
      return MakeError(ErrorCode::kUsage, "report: -o - and --json both write to standard output");
    }
    std::vector<JobFigures> jobs;
    std::vector<Input> inputs;
    ETUDE_RETURN_IF_ERROR(FindInputs(console.context(), jobs, inputs));
    for (const Input& input : inputs) {
      ETUDE_RETURN_IF_ERROR(CheckOutput(output_, {input.trace.path, input.trace.device}));
    }
    ETUDE_RETURN_IF_ERROR(ReadAll(console, inputs, jobs));
    const std::string title = title_.value_or(DefaultTitle());
    const Page page = MakeJobPage(title, std::move(jobs));
    if (!output_.empty()) {
      ETUDE_RETURN_IF_ERROR(WriteFile(output_, ToHtml(page)));
    }
    if (json_) {
      console.Print(JsonText(ToJson(page), 1));
    } else if (output_ != "-") {
      console.Print(fmt::format("wrote {}: {}; {}", output_, FormatCount(inputs.size(), "trace"),
                                ToText(*page.health)));
    }
    return ExitCode::kOk;
  }

 private:
  // A folder is a job; so are the given files, if their ranks are known and differ.
  Status FindInputs(const RunContext& context, std::vector<JobFigures>& jobs,
                    std::vector<Input>& inputs) {
    std::vector<std::string> files;
    for (const std::string& path : paths_) {
      if (path == "-" || !IsFolder(path)) {
        files.push_back(path);
      } else {
        ETUDE_RETURN_IF_ERROR(AddFolder(path, context, jobs, inputs));
      }
    }
    if (files.empty()) return {};
    ETUDE_ASSIGN_OR_RETURN(std::vector<RankInput> ranks, FindRanks(files, context));
    jobs.push_back({.name = files.size() == 1 ? files.front() : "files"});
    for (RankInput& rank : ranks) {
      inputs.push_back({.job = jobs.size() - 1, .trace = std::move(rank), .timed = {}});
    }
    return {};
  }

  static Status AddFolder(const std::string& path, const RunContext& context,
                          std::vector<JobFigures>& jobs, std::vector<Input>& inputs) {
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(path, context));
    JobFigures& job = jobs.emplace_back();
    job.name = path;
    ETUDE_ASSIGN_OR_RETURN(const std::optional<ComparedSteps> compared,
                           ReadComparedSteps(path, context));
    if (compared) job.edited = TablesOf(*compared);
    for (const CaptureRank& rank : folder.ranks) {
      Input input{.job = jobs.size() - 1, .trace = RichestInput(rank), .timed = {}};
      input.trace.rank = folder.known_rank(rank);
      RankInput timed = TimedInput(rank);
      const bool other = timed.path != input.trace.path || !input.trace.device.empty();
      if (other) input.timed = std::move(timed);
      inputs.push_back(std::move(input));
      AddReplay(folder, rank, context, job);
    }
    return {};
  }

  // Adds the results of earlier commands on the rank's replay.
  static void AddReplay(const CaptureFolder& folder, const CaptureRank& rank,
                        const RunContext& context, JobFigures& job) {
    const auto add = [&](const std::string& path, auto& list, auto read) {
      // Errors of this check are reported by reading.
      std::error_code error;
      if (!std::filesystem::exists(path, error) && !error) return;
      if (auto found = read()) {
        list.push_back(std::move(*found));
      } else {
        job.replay_notes.push_back(found.error().message);
      }
    };
    add(ReplayFile(folder, rank), job.replays, [&] { return CompareWithReplay(folder, rank); });
    const std::string path = RunComparisonFile(folder, rank);
    add(path, job.runs, [&] { return ReadRunComparison(path, context); });
  }

  Status ReadAll(const Console& console, const std::vector<Input>& inputs,
                 std::vector<JobFigures>& jobs) const {
    const ReadOptions options{.strict = console.strict()};
    const size_t most_events = std::max<size_t>(static_cast<size_t>(events_) / inputs.size(), 1);
    const auto read = [&](size_t i, const RunContext& context) {
      return ReadFigures(inputs[i], options, most_events, context);
    };
    ETUDE_ASSIGN_OR_RETURN(std::vector<RankFigures> figures,
                           ForEachRank<RankFigures>(inputs.size(), jobs_, console.context(), read));
    for (size_t i = 0; i < inputs.size(); ++i) {
      jobs[inputs[i].job].ranks.push_back(std::move(figures[i]));
    }
    return {};
  }

  std::string DefaultTitle() const {
    const std::filesystem::path first(paths_.front());
    std::string name =
        first.has_filename() ? first.filename().string() : first.parent_path().filename().string();
    if (name.empty() || name == "-") name = "standard input";
    if (paths_.size() > 1) name += fmt::format(" and {} more", paths_.size() - 1);
    return name;
  }

  std::vector<std::string> paths_;
  std::string output_;
  std::optional<std::string> title_;
  int64_t events_ = 1'000'000;
  int64_t jobs_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeReportCommand() { return std::make_unique<ReportCommand>(); }

}  // namespace etude
