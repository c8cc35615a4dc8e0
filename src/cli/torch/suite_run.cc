#include "src/cli/app/commands.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/cli/torch/suite_runs.h"
#include "src/report/text/json_output.h"
#include "src/suite/results/catalogue.h"
#include "src/suite/results/score.h"

namespace etude {
namespace {

using suite::RunRecord;
using suite::Score;
using suite::TaskFacts;

// A run that ended with an error.
struct FailedRun {
  const SuiteRunner::Job* job = nullptr;
  Error error;

  std::string text() const {
    return fmt::format("{}, seed {}: {}", job->task->id, job->options.seed, error.message);
  }
};

class SuiteRunCommand : public Command {
 public:
  std::string_view name() const override { return "run"; }
  std::string_view summary() const override { return kSuiteRunSummary; }

  void Declare(Options& options) override {
    tasks_.Declare(options);
    settings_.Declare(options);
    options.Choice("--mode", &mode_, {"quality", "steps"},
                   "train to the target quality, or measure steps");
    options.Value("--seed", &seed_, "N", "seed of the first run", {.least = 0});
    options.Value("--seeds", &seeds_, "N", "number of runs, each with its own seed",
                  {.least = 1, .most = kMostSeeds});
    options.Value("--target", &settings_.run.target, "QUALITY",
                  "target quality (default: the task's)");
    options.Choice("--clicks", &clicks_, {"generated", "caravan"},
                   "data of advertising at smoke scale; caravan: real policies, without a target "
                   "(default: generated)");
    options.Value("--warmup", &settings_.run.warmup, "N",
                  "number of warm-up steps before timed or recorded steps",
                  {.least = 0, .most = kMostTrainingSteps});
    options.Value("--iterations", &settings_.run.timed_steps, "N",
                  "steps mode: number of timed steps", {.least = 1, .most = kMostTrainingSteps});
    options.Output("-o,--output", &output_, "FOLDER",
                   "keep the runs in FOLDER; finished runs there are not repeated", {});
    options.Value("--record", &record_, "FOLDER",
                  "record a step of each task as a capture folder below FOLDER, without training");
    options.Flag("--shuffled-labels", &settings_.run.shuffled_labels,
                 "check the target: train on shuffled labels, which must miss it");
    options.Flag("--frozen", &settings_.run.frozen,
                 "check the target: train with frozen weights, which must miss it");
    options.Flag("--json", &json_, "print JSON");
    options.Footer("Exit code 1 if a target was missed.");
  }

  Result<ExitCode> Run(const Console& console) override {
    if (!record_.empty() && !(output_.empty() && mode_.empty())) {
      return MakeError(ErrorCode::kUsage, fmt::format("--record cannot be combined with {}",
                                                      mode_.empty() ? "--output" : "--mode"));
    }
    ETUDE_ASSIGN_OR_RETURN(const std::vector<const TaskFacts*> tasks, tasks_.Choose());
    ETUDE_RETURN_IF_ERROR(settings_.Read());
    const bool has_clicks = tasks.size() == 1 && tasks.front()->id == "advertising" &&
                            settings_.run.scale == suite::Scale::kSmoke;
    if (!clicks_.empty() && !has_clicks) {
      return MakeError(ErrorCode::kUsage, "--clicks is for advertising alone, with --scale smoke");
    }
    settings_.run.caravan = clicks_ == "caravan";
    ETUDE_ASSIGN_OR_RETURN(const auto references, suite::BuiltInReferences(console.context()));
    ETUDE_ASSIGN_OR_RETURN(const auto runner, SuiteRunner::Make(settings_, output_));
    if (const auto pace = FindPaceRequest()) return RunPaced(tasks, *pace, *runner, console);
    if (!record_.empty()) return Record(tasks, *runner, console);

    const auto mode = mode_ == "steps" ? SuiteRunner::Mode::kSteps : SuiteRunner::Mode::kQuality;
    const std::vector<SuiteRunner::Job> jobs = JobsOf(tasks, settings_.run, mode, seed_, seeds_);
    ETUDE_RETURN_IF_ERROR(runner->CheckAll(jobs, mode, console.context()));
    std::vector<Score> scores;
    std::vector<FailedRun> failed;
    for (size_t begin = 0; begin < jobs.size(); begin += static_cast<size_t>(seeds_)) {
      const TaskFacts& task = *jobs[begin].task;
      std::vector<RunRecord> runs;
      for (const SuiteRunner::Job& job :
           std::span(jobs).subspan(begin, static_cast<size_t>(seeds_))) {
        Result<RunRecord> ran = runner->Run(task, mode, job.options, job.name, console.context());
        if (!ran) {
          failed.push_back({.job = &job, .error = std::move(ran.error())});
          if (tasks.size() > 1 && !WasInterrupted(failed)) console.Complain(failed.back().text());
          break;
        }
        runs.push_back(*std::move(ran));
        if (!json_) console.Print(suite::ToText(runs.back()) + "\n");
      }
      // Completed results are kept if later runs fail.
      if (!runs.empty()) {
        scores.push_back(suite::ScoreOf(std::move(runs), references));
        if (!json_ && scores.back().convergence) {
          console.Print(fmt::format("{}: {}\n", task.id, ToText(*scores.back().convergence)));
        }
      }
      if (WasInterrupted(failed)) break;
    }
    if (json_) console.Print(JsonText(WithFailed(suite::ToJson(scores), failed), 1));
    if (!failed.empty()) return Failure(failed, tasks.size());
    if (mode == SuiteRunner::Mode::kSteps) return ExitCode::kOk;
    const bool missed = std::ranges::any_of(
        scores, [](const Score& score) { return score.target && !score.reached; });
    return missed ? ExitCode::kNo : ExitCode::kOk;
  }

 private:
  static nlohmann::ordered_json WithFailed(nlohmann::ordered_json json,
                                           const std::vector<FailedRun>& failed) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const FailedRun& run : failed) {
      rows.push_back({{"id", run.job->task->id},
                      {"seed", run.job->options.seed},
                      {"exit_code", static_cast<int>(ExitCodeOf(run.error.code))},
                      {"error", run.error.message}});
    }
    json["failed"] = std::move(rows);
    return json;
  }

  static bool WasInterrupted(const std::vector<FailedRun>& failed) {
    return !failed.empty() && failed.back().error.code == ErrorCode::kInterrupted;
  }

  // Returns the command's error. Errors of several tasks have been printed.
  static tl::unexpected<Error> Failure(const std::vector<FailedRun>& failed, size_t tasks) {
    if (tasks == 1 || WasInterrupted(failed)) return tl::unexpected<Error>(failed.back().error);
    std::vector<std::string_view> names;
    for (const FailedRun& run : failed) names.push_back(run.job->task->id);
    return MakeError(
        failed.front().error.code,
        fmt::format("{} of {} tasks failed: {}", failed.size(), tasks, fmt::join(names, ", ")));
  }

  Result<ExitCode> RunPaced(const std::vector<const TaskFacts*>& tasks, const PaceRequest& pace,
                            SuiteRunner& runner, const Console& console) {
    if (tasks.size() != 1) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("suite run: found {} tasks, expected one to compare with", tasks.size()));
    }
    suite::RunOptions options = settings_.run;
    options.seed = static_cast<uint64_t>(seed_);
    ETUDE_RETURN_IF_ERROR(runner.RunPaced(*tasks.front(), options, pace, console.context()));
    return ExitCode::kOk;
  }

  Result<ExitCode> Record(const std::vector<const TaskFacts*>& tasks, SuiteRunner& runner,
                          const Console& console) {
    ETUDE_RETURN_IF_ERROR(
        runner.CheckAll(JobsOf(tasks, settings_.run, SuiteRunner::Mode::kSteps, seed_, seeds_),
                        SuiteRunner::Mode::kSteps, console.context()));
    for (const TaskFacts* task : tasks) {
      suite::RunOptions options = settings_.run;
      options.seed = static_cast<uint64_t>(seed_);
      const std::string folder = fmt::format("{}/{}", record_, task->id);
      ETUDE_RETURN_IF_ERROR(runner.Record(*task, options, folder, console.context()));
      console.Print("wrote " + folder + "\n");
    }
    return ExitCode::kOk;
  }

  TaskChoice tasks_;
  RunSettings settings_;
  std::string mode_;    // "": quality
  std::string clicks_;  // "": generated
  std::string output_;
  std::string record_;
  int64_t seed_ = 1;
  int64_t seeds_ = 1;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSuiteRunCommand() { return std::make_unique<SuiteRunCommand>(); }

}  // namespace etude
