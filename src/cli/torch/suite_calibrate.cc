#include "src/cli/app/commands.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/cli/torch/suite_runs.h"
#include "src/formats/io/atomic_file.h"
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

ordered_json ToJson(const Calibration& calibration) {
  // Runs continue after the target, so the first evaluation that reached it counts.
  const auto to_target = [&](const RunRecord& run) -> ordered_json {
    const suite::QualityPoint* point = suite::FirstReaching(run, calibration.target);
    return {{"steps_to_target", point == nullptr ? ordered_json() : ordered_json(point->step)},
            {"epochs_to_target", OrNull(suite::EpochsTo(run, calibration.target))}};
  };
  ordered_json fitted = ordered_json::array();
  for (const RunRecord& run : calibration.fitted) {
    ordered_json& row = fitted.emplace_back();
    row = {{"seed", run.seed}, {"best", BestOf(run)}, {"seconds", run.seconds}};
    row.update(to_target(run));
  }
  const auto brief = [&](const RunRecord& run) {
    ordered_json row{
        {"seed", run.seed},    {"reached", run.reached}, {"quality", OrNull(run.quality)},
        {"best", BestOf(run)}, {"epochs", run.epochs()}, {"seconds", run.seconds}};
    row.update(to_target(run));
    return row;
  };
  ordered_json checked = ordered_json::array();
  for (const RunRecord& run : calibration.checked) checked.push_back(brief(run));
  const RunRecord& first = calibration.fitted.front();
  return {{"id", calibration.task->id},
          {"scale", first.scale},
          {"precision", first.precision},
          {"batch", first.batch},
          {"optimizer", first.optimizer},
          {"evaluate_every", OrNull(suite::StepsBetweenEvaluations(first))},
          {"samples", first.samples},
          {"parameters", first.parameters},
          {"metric", first.metric},
          {"target", calibration.target},
          {"baseline", OrNull(first.baseline)},
          {"proposal", ProposalOf(calibration.fitted)},
          {"holds", calibration.holds()},
          {"fitted", std::move(fitted)},
          {"checked", std::move(checked)},
          {"shuffled_labels", brief(calibration.shuffled)},
          {"frozen", brief(calibration.frozen)},
          {"machine", etude::ToJson(first.machine)},
          {"threads", first.threads},
          {"torch", first.torch}};
}

class SuiteCalibrateCommand : public Command {
 public:
  std::string_view name() const override { return "calibrate"; }
  std::string_view summary() const override { return kSuiteCalibrateSummary; }

  void Declare(Options& options) override {
    tasks_.Declare(options);
    settings_.Declare(options);
    options.Value("--seeds", &seeds_, "N",
                  "number of seeds to determine the target, and of other seeds to check it",
                  {.least = 2, .most = kMostSeeds});
    options.Output("-o,--output", &output_, "FOLDER",
                   "folder for calibration.json and the runs; finished runs there are not repeated",
                   {});
    options.Required("--output");
    options.Footer(
        "Exit code 1 if a target does not hold: a seed misses it, or a run with shuffled labels or "
        "frozen weights reaches it.");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<const TaskFacts*> tasks, tasks_.Choose());
    ETUDE_RETURN_IF_ERROR(settings_.Read());
    if (settings_.run.sparse) {
      return MakeError(ErrorCode::kUsage, "suite calibrate: --sparse is not supported");
    }
    ETUDE_ASSIGN_OR_RETURN(const auto runner, SuiteRunner::Make(settings_, output_ + "/runs"));
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
    ordered_json json{{"format", "etude-suite-calibration"}, {"version", 1}};
    for (const Calibration& one : all) json["tasks"].push_back(ToJson(one));
    ETUDE_RETURN_IF_ERROR(ReplaceFile(output_ + "/calibration.json", JsonText(json, 1)));
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
    const std::optional<suite::Target> target = task.TargetOf(settings_.run.scale);
    if (!target) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("{}: found no target at this scale", task.id));
    }
    const auto run = [&](std::string_view kind, RunOptions options) {
      const SuiteRunner::Job job = JobOf(task, kind, std::move(options));
      return runner.Run(task, SuiteRunner::Mode::kQuality, job.options, job.name,
                        console.context());
    };
    Calibration found{.task = &task, .target = target->quality};
    for (int64_t i = 0; i < 2 * seeds_; ++i) {
      RunOptions options = settings_.run;
      options.seed = static_cast<uint64_t>(i + 1);
      options.to_the_end = i < seeds_;
      auto& runs = i < seeds_ ? found.fitted : found.checked;
      ETUDE_ASSIGN_OR_RETURN(runs.emplace_back(), run(i < seeds_ ? "fit" : "check", options));
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
  int64_t seeds_ = 5;
};

}  // namespace

std::unique_ptr<Command> MakeSuiteCalibrateCommand() {
  return std::make_unique<SuiteCalibrateCommand>();
}

}  // namespace etude
