#include "src/cli/suite_run.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/cli/suite_runs.h"
#include "src/report/json_output.h"
#include "src/suite/catalogue.h"
#include "src/suite/score.h"

namespace etude {
namespace {

using suite::RunRecord;
using suite::Score;
using suite::TaskFacts;

class SuiteRunCommand : public Command {
 public:
  std::string_view name() const override { return "run"; }
  std::string_view summary() const override { return "train tasks and time them"; }

  void Declare(Options& options) override {
    tasks_.Declare(options);
    settings_.Declare(options);
    options.Choice("--mode", &mode_, {"quality", "steps"},
                   "train to the target quality, or time steps");
    options.Value("--seed", &seed_, "N", "seed of the first run", {.least = 0});
    options.Value("--seeds", &seeds_, "N", "runs, each with a seed of its own",
                  {.least = 1, .most = kMostSeeds});
    options.Value("--target", &settings_.run.target, "QUALITY", "another target");
    options.Value("--warmup", &settings_.run.warmup, "N",
                  "steps before those that are timed or recorded",
                  {.least = 0, .most = kMostTrainingSteps});
    options.Value("--iterations", &settings_.run.timed_steps, "N", "steps mode: timed steps",
                  {.least = 1, .most = kMostTrainingSteps});
    options.Output("-o,--output", &output_, "FOLDER",
                   "keep the runs there; those that are there already are not run again", {});
    options.Value("--record", &record_, "FOLDER",
                  "train nothing: record a step of each task as a capture folder below FOLDER");
    options.Flag("--shuffled-labels", &settings_.run.shuffled_labels,
                 "a test of the target: nothing can be learned, it must be missed");
    options.Flag("--frozen", &settings_.run.frozen,
                 "a test of the target: the weights stay, it must be missed");
    options.Flag("--json", &json_, "print JSON");
    options.Footer("Exit code 1 if a target was missed.");
  }

  Result<ExitCode> Run(const Console& console) override {
    if (!record_.empty() && !(output_.empty() && mode_.empty())) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--record trains nothing and keeps no runs, expected no {}",
                                   mode_.empty() ? "--output" : "--mode"));
    }
    ETUDE_ASSIGN_OR_RETURN(const std::vector<const TaskFacts*> tasks, tasks_.Choose());
    settings_.Read();
    ETUDE_ASSIGN_OR_RETURN(const auto references, suite::BuiltInReferences(console.context()));
    ETUDE_ASSIGN_OR_RETURN(const auto runner, SuiteRunner::Make(settings_, output_));
    if (!record_.empty()) return Record(tasks, *runner, console);

    const auto mode = mode_ == "steps" ? SuiteRunner::Mode::kSteps : SuiteRunner::Mode::kQuality;
    std::vector<Score> scores;
    for (const TaskFacts* task : tasks) {
      std::vector<RunRecord> runs;
      for (int64_t seed = seed_; seed < seed_ + seeds_; ++seed) {
        suite::RunOptions options = settings_.run;
        options.seed = static_cast<uint64_t>(seed);
        const std::string name = RunName(*task, options.scale, mode, options.seed);
        ETUDE_ASSIGN_OR_RETURN(runs.emplace_back(),
                               runner->Run(*task, mode, options, name, console.context()));
        if (!json_) console.Print(suite::ToText(runs.back()) + "\n");
      }
      scores.push_back(suite::ScoreOf(std::move(runs), references));
      if (!json_ && scores.back().convergence) {
        console.Print(fmt::format("{}: {}\n", task->id, ToText(*scores.back().convergence)));
      }
    }
    if (json_) console.Print(JsonText(suite::ToJson(scores), 1));
    if (mode == SuiteRunner::Mode::kSteps) return ExitCode::kOk;
    return std::ranges::all_of(scores, &Score::reached) ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  Result<ExitCode> Record(const std::vector<const TaskFacts*>& tasks, SuiteRunner& runner,
                          const Console& console) {
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
  std::string mode_;  // "": quality
  std::string output_;
  std::string record_;
  int64_t seed_ = 1;
  int64_t seeds_ = 1;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSuiteRunCommand() { return std::make_unique<SuiteRunCommand>(); }

}  // namespace etude
