#include "src/cli/app/commands.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/statistics/variation.h"
#include "src/cli/torch/suite_runs.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/jobs/output_files.h"
#include "src/report/text/json_output.h"
#include "src/report/text/table.h"
#include "src/suite/results/catalogue.h"
#include "src/suite/results/reference_convergence.h"

namespace etude {
namespace {

using nlohmann::ordered_json;
using suite::RunOptions;
using suite::RunRecord;
using suite::TaskFacts;

constexpr int64_t kUsualSeeds = 5;

// Calibration of a task's target: the runs that determined and checked it.
struct Calibration {
  const TaskFacts* task = nullptr;
  double target = 0;               // the task's target
  std::vector<RunRecord> fitted;   // run to the end, regardless of the target
  std::vector<RunRecord> checked;  // with other seeds, to the target
  RunRecord shuffled;              // with nothing to learn
  RunRecord frozen;                // with fixed weights

  bool all_reached() const { return std::ranges::all_of(checked, &RunRecord::reached); }
  bool holds() const { return all_reached() && !shuffled.reached && !frozen.reached; }
};

// Returns the best of a run's evaluations; NaN if there is none.
double BestOf(const RunRecord& run) {
  double best = run.curve.empty() ? 0 : run.curve.front().quality;
  for (const suite::QualityPoint& point : run.curve) {
    best = run.higher_is_better ? std::fmax(best, point.quality) : std::fmin(best, point.quality);
  }
  return best;
}

// Returns a target that other seeds should reach, too: the worst of the runs' best qualities, minus
// their spread.
double ProposalOf(const std::vector<RunRecord>& fitted) {
  double low = BestOf(fitted.front());
  double high = low;
  for (const RunRecord& run : fitted) {
    low = std::min(low, BestOf(run));
    high = std::max(high, BestOf(run));
  }
  return fitted.front().higher_is_better ? low - (high - low) : high + (high - low);
}

// Runs of a task to the target with seeds from 1 on.
struct Repeated {
  const TaskFacts* task = nullptr;
  double target = 0;
  std::vector<RunRecord> runs;

  size_t missed() const {
    return static_cast<size_t>(std::ranges::count(runs, false, &RunRecord::reached));
  }
};

// Returns the settings that all runs of a task share.
ordered_json SettingsJson(const RunRecord& run, double target) {
  return {{"id", run.task},
          {"scale", run.scale},
          {"precision", run.precision},
          {"batch", run.batch},
          {"optimizer", run.optimizer},
          {"evaluate_every", OrNull(suite::StepsBetweenEvaluations(run))},
          {"samples", run.samples},
          {"parameters", run.parameters},
          {"metric", run.metric},
          {"target", target},
          {"baseline", OrNull(run.baseline)}};
}

ordered_json MachineJson(const RunRecord& run) {
  return {{"machine", etude::ToJson(run.machine)}, {"threads", run.threads}, {"torch", run.torch}};
}

// Runs may continue after the target, so the first evaluation that reached it counts.
ordered_json ToTargetJson(const RunRecord& run, double target) {
  const suite::QualityPoint* point = suite::FirstReaching(run, target);
  return {{"steps_to_target", point == nullptr ? ordered_json() : ordered_json(point->step)},
          {"epochs_to_target", OrNull(suite::EpochsTo(run, target))}};
}

ordered_json ToJson(const Repeated& repeated) {
  ordered_json json = SettingsJson(repeated.runs.front(), repeated.target);
  for (const RunRecord& run : repeated.runs) {
    ordered_json& row = json["repeated"].emplace_back();
    row = {{"seed", run.seed}};
    row.update(ToTargetJson(run, repeated.target));
  }
  json.update(MachineJson(repeated.runs.front()));
  return json;
}

ordered_json ToJson(const Calibration& calibration) {
  ordered_json fitted = ordered_json::array();
  for (const RunRecord& run : calibration.fitted) {
    ordered_json& row = fitted.emplace_back();
    row = {{"seed", run.seed}, {"best", BestOf(run)}, {"seconds", run.seconds}};
    row.update(ToTargetJson(run, calibration.target));
  }
  const auto brief = [&](const RunRecord& run) {
    ordered_json row{
        {"seed", run.seed},    {"reached", run.reached}, {"quality", OrNull(run.quality)},
        {"best", BestOf(run)}, {"epochs", run.epochs()}, {"seconds", run.seconds}};
    row.update(ToTargetJson(run, calibration.target));
    return row;
  };
  ordered_json checked = ordered_json::array();
  for (const RunRecord& run : calibration.checked) checked.push_back(brief(run));
  const RunRecord& first = calibration.fitted.front();
  ordered_json json = SettingsJson(first, calibration.target);
  json.update({{"proposal", ProposalOf(calibration.fitted)},
               {"holds", calibration.holds()},
               {"fitted", std::move(fitted)},
               {"checked", std::move(checked)},
               {"shuffled_labels", brief(calibration.shuffled)},
               {"frozen", brief(calibration.frozen)}});
  json.update(MachineJson(first));
  return json;
}

// Writes {"format": "etude-suite-calibration", …} (docs/formats/suite_calibration.md) with
// `entries`, and with other tasks of an existing file. kBadInput if that is invalid.
template <typename Entry>
Status WriteEntries(const std::string& path, const std::vector<Entry>& entries,
                    const RunContext& context) {
  std::vector<ordered_json> tasks;
  for (const Entry& entry : entries) tasks.push_back(ToJson(entry));
  if (IsThere(path)) {
    ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, context.limits));
    ETUDE_RETURN_IF_ERROR(suite::ParseReferences(path, text, context));
    const ordered_json file = ordered_json::parse(text);
    for (const ordered_json& before : file.at("tasks")) {
      const auto is_same = [&](const ordered_json& task) {
        return task["id"] == before.value("id", "") && task["scale"] == before.value("scale", "");
      };
      if (std::ranges::none_of(tasks, is_same)) tasks.push_back(before);
    }
  }
  std::ranges::stable_sort(
      tasks, {}, [](const ordered_json& task) { return suite::FindTask(task.value("id", "")); });
  const ordered_json json{{"format", "etude-suite-calibration"}, {"version", 1}, {"tasks", tasks}};
  return ReplaceFile(path, JsonText(json, 1));
}

class SuiteCalibrateCommand : public Command {
 public:
  std::string_view name() const override { return "calibrate"; }
  std::string_view summary() const override { return kSuiteCalibrateSummary; }

  void Declare(Options& options) override {
    tasks_.Declare(options);
    settings_.Declare(options);
    options.Value("--seeds", &seeds_, "N",
                  "number of seeds to determine the target, and of other seeds to check it "
                  "(default: 5)",
                  {.least = 2, .most = kMostSeeds});
    options.Value("--variation", &variation_, "N",
                  "only measure the variation of epochs to the target, by runs with seeds 1 to N "
                  "that are evaluated often enough for it",
                  {.least = 2, .most = kMostSeeds});
    options.Output("-o,--output", &output_, "FOLDER",
                   "folder for calibration.json or variation.json, and the runs; finished runs "
                   "there are not repeated",
                   {});
    options.Required("--output");
    options.Footer(
        "Exit code 1 if a target does not hold: a seed misses it, or a run with shuffled labels or "
        "frozen weights reaches it. With --variation: if a seed misses its target.");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<const TaskFacts*> tasks, tasks_.Choose());
    ETUDE_RETURN_IF_ERROR(settings_.Read());
    if (settings_.run.sparse) {
      return MakeError(ErrorCode::kUsage, "suite calibrate: --sparse is not supported");
    }
    if (seeds_ && variation_) {
      return MakeError(ErrorCode::kUsage, "--variation cannot be combined with --seeds");
    }
    for (const TaskFacts* task : tasks) {
      if (task->TargetOf(settings_.run.scale)) continue;
      return MakeError(ErrorCode::kUsage,
                       fmt::format("{}: found no target at this scale", task->id));
    }
    ETUDE_ASSIGN_OR_RETURN(const auto runner, SuiteRunner::Make(settings_, output_ + "/runs"));
    if (variation_) return MeasureVariation(tasks, *runner, console);
    std::vector<SuiteRunner::Job> first;
    for (const TaskFacts* task : tasks) {
      RunOptions options = settings_.run;
      options.seed = 1;
      options.to_the_end = true;
      first.push_back(JobOf(*task, "fit", std::move(options)));
    }
    ETUDE_RETURN_IF_ERROR(runner->CheckAll(first, SuiteRunner::Mode::kQuality, console.context()));
    std::vector<Calibration> all;
    for (const TaskFacts* task : tasks) {
      ETUDE_ASSIGN_OR_RETURN(all.emplace_back(), Calibrate(*task, *runner, console));
    }
    ETUDE_RETURN_IF_ERROR(WriteEntries(output_ + "/calibration.json", all, console.context()));
    console.Print(ToText(Summary(all)));
    return std::ranges::all_of(all, &Calibration::holds) ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  static SuiteRunner::Job JobOf(const TaskFacts& task, std::string_view kind, RunOptions options) {
    options.kind_in_name = true;
    std::string name =
        fmt::format("{}.{}.{}.{}", task.id, suite::Name(options.scale), kind, options.seed);
    return {.task = &task, .options = std::move(options), .name = std::move(name)};
  }

  Result<Calibration> Calibrate(const TaskFacts& task, SuiteRunner& runner,
                                const Console& console) const {
    const auto run = [&](std::string_view kind, RunOptions options) {
      const SuiteRunner::Job job = JobOf(task, kind, std::move(options));
      return runner.Run(task, SuiteRunner::Mode::kQuality, job.options, job.name,
                        console.context());
    };
    Calibration found{.task = &task, .target = task.TargetOf(settings_.run.scale)->quality};
    const int64_t seeds = seeds_.value_or(kUsualSeeds);
    for (int64_t i = 0; i < 2 * seeds; ++i) {
      RunOptions options = settings_.run;
      options.seed = static_cast<uint64_t>(i + 1);
      options.to_the_end = i < seeds;
      auto& runs = i < seeds ? found.fitted : found.checked;
      ETUDE_ASSIGN_OR_RETURN(runs.emplace_back(), run(i < seeds ? "fit" : "check", options));
      console.Say(suite::ToText(runs.back()));
    }
    RunOptions options = settings_.run;
    options.seed = 1;
    options.shuffled_labels = true;
    ETUDE_ASSIGN_OR_RETURN(found.shuffled, run("shuffled", options));
    console.Say("shuffled labels: " + suite::ToText(found.shuffled));
    options.shuffled_labels = false;
    options.frozen = true;
    ETUDE_ASSIGN_OR_RETURN(found.frozen, run("frozen", options));
    console.Say("frozen weights: " + suite::ToText(found.frozen));
    return found;
  }

  // Trains all tasks to the target with seeds from 1 on, and writes variation.json.
  Result<ExitCode> MeasureVariation(const std::vector<const TaskFacts*>& tasks, SuiteRunner& runner,
                                    const Console& console) const {
    std::vector<SuiteRunner::Job> jobs;
    for (const TaskFacts* task : tasks) {
      for (int64_t seed = 1; seed <= *variation_; ++seed) {
        RunOptions options = settings_.run;
        options.seed = static_cast<uint64_t>(seed);
        options.evaluate_every = task->VariationInterval(options.scale, options.evaluate_every);
        jobs.push_back(JobOf(*task, "variation", std::move(options)));
      }
    }
    ETUDE_RETURN_IF_ERROR(runner.CheckAll(jobs, SuiteRunner::Mode::kQuality, console.context()));
    std::vector<Repeated> all;
    for (const SuiteRunner::Job& job : jobs) {
      if (all.empty() || all.back().task != job.task) {
        all.push_back({.task = job.task,
                       .target = job.task->TargetOf(settings_.run.scale)->quality,
                       .runs = {}});
      }
      ETUDE_ASSIGN_OR_RETURN(RunRecord run, runner.Run(*job.task, SuiteRunner::Mode::kQuality,
                                                       job.options, job.name, console.context()));
      console.Say(suite::ToText(run));
      all.back().runs.push_back(std::move(run));
    }
    ETUDE_RETURN_IF_ERROR(WriteEntries(output_ + "/variation.json", all, console.context()));
    console.Print(ToText(VariationTable(all)));
    const bool missed =
        std::ranges::any_of(all, [](const Repeated& one) { return one.missed() != 0; });
    return missed ? ExitCode::kNo : ExitCode::kOk;
  }

  static Table VariationTable(const std::vector<Repeated>& all) {
    Table table{.key = "variation",
                .title = "Variation of the epochs to the target",
                .columns = {{"task", "task"},
                            {"runs", "runs", Unit::kCount},
                            {"missed", "missed", Unit::kCount},
                            {"epochs", "epochs", Unit::kNumber},
                            {"variation", "variation", Unit::kShare},
                            {"low", "at least", Unit::kShare},
                            {"high", "at most", Unit::kShare},
                            {"interval", "steps between evaluations", Unit::kCount},
                            {"deviations", "in standard deviations", Unit::kNumber}},
                .rows = {}};
    for (const Repeated& one : all) {
      const RunRecord& first = one.runs.front();
      const double epoch = static_cast<double>(first.samples) / static_cast<double>(first.batch);
      const auto steps = suite::StepsBetweenEvaluations(first);
      const double interval = static_cast<double>(steps.value_or(0)) / epoch;
      std::vector<double> epochs;
      for (const RunRecord& run : one.runs) {
        if (const auto own = suite::EpochsTo(run, one.target)) epochs.push_back(*own);
      }
      const auto found = VariationOf(epochs, interval);
      const auto part = [&](double Variation::*member) {
        return found && std::isfinite((*found).*member) ? Cell((*found).*member) : Cell();
      };
      const bool varies = found && found->coefficient > 0;
      table.rows.push_back({std::string(one.task->id), CountCell(one.runs.size()),
                            CountCell(one.missed()), part(&Variation::mean),
                            part(&Variation::coefficient), part(&Variation::low),
                            part(&Variation::high), steps ? Cell(*steps) : Cell(),
                            varies ? Cell(interval / (found->coefficient * found->mean)) : Cell()});
    }
    return table;
  }

  static Table Summary(const std::vector<Calibration>& all) {
    Table table{.key = "calibration",
                .title = "Targets",
                .columns = {{"task", "task"},
                            {"metric", "metric"},
                            {"target", "target", Unit::kNumber},
                            {"baseline", "baseline", Unit::kNumber},
                            {"worst", "worst best value", Unit::kNumber},
                            {"proposal", "proposal", Unit::kNumber},
                            {"reached", "reached by other seeds"},
                            {"shuffled", "shuffled", Unit::kNumber},
                            {"frozen", "frozen", Unit::kNumber},
                            {"holds", "holds"}},
                .rows = {}};
    for (const Calibration& one : all) {
      std::vector<double> bests;
      for (const RunRecord& run : one.fitted) bests.push_back(BestOf(run));
      const bool higher = one.task->metric.higher_is_better;
      table.rows.push_back(
          {std::string(one.task->id), std::string(one.task->metric.name), one.target,
           ToCell(one.fitted.front().baseline),
           higher ? std::ranges::min(bests) : std::ranges::max(bests), ProposalOf(one.fitted),
           fmt::format("{} of {}", std::ranges::count_if(one.checked, &RunRecord::reached),
                       one.checked.size()),
           BestOf(one.shuffled), BestOf(one.frozen), std::string(one.holds() ? "yes" : "no")});
    }
    return table;
  }

  TaskChoice tasks_;
  RunSettings settings_;
  std::string output_;
  std::optional<int64_t> seeds_;      // nullopt: kUsualSeeds
  std::optional<int64_t> variation_;  // number of seeds; nullopt: calibrate
};

}  // namespace

std::unique_ptr<Command> MakeSuiteCalibrateCommand() {
  return std::make_unique<SuiteCalibrateCommand>();
}

}  // namespace etude
