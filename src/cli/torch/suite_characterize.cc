#include "src/cli/app/commands.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/cli/app/task_loop.h"
#include "src/cli/torch/suite_runs.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/read_trace.h"
#include "src/report/text/json_output.h"
#include "src/report/text/table.h"
#include "src/suite/machine_peaks.h"
#include "src/suite/results/characterization.h"

namespace etude {
namespace {

using suite::Characterization;
using suite::RunRecord;
using suite::TaskFacts;
using Mode = SuiteRunner::Mode;

class SuiteCharacterizeCommand : public Command {
 public:
  std::string_view name() const override { return "characterize"; }
  std::string_view summary() const override { return kSuiteCharacterizeSummary; }

  void Declare(Options& options) override {
    tasks_.Declare(options);
    settings_.Declare(options);
    options.Value("--seeds", &seeds_, "N",
                  "training runs of each task, with seeds 1 to N; 0: no epochs to target",
                  {.least = 0, .most = kMostSeeds});
    options.Value("--warmup", &settings_.run.warmup, "N",
                  "number of warm-up steps before timed or recorded steps",
                  {.least = 0, .most = kMostTrainingSteps});
    options.Value("--iterations", &settings_.run.timed_steps, "N", "number of timed steps",
                  {.least = 1, .most = kMostTrainingSteps});
    options.Output("-o,--output", &output_, "FOLDER",
                   "folder for the figures, the page, the runs and the recorded steps; what is "
                   "there is not repeated",
                   {});
    options.Required("--output");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<const TaskFacts*> tasks, tasks_.Choose());
    ETUDE_RETURN_IF_ERROR(settings_.Read());
    if (settings_.ranks > 1) {
      return MakeError(ErrorCode::kUsage, "suite characterize: --ranks is not supported");
    }
    Found found;
    TaskLoop loop(tasks, console);
    ETUDE_RETURN_IF_ERROR(TimeSteps(tasks, loop, found, console));
    ETUDE_RETURN_IF_ERROR(RecordSteps(loop, found, console));
    ETUDE_RETURN_IF_ERROR(Train(tasks, loop, found, console));
    suite::Characterizations all{.scale = settings_.scale};
    for (const TaskFacts* task : tasks) {
      if (!loop.HasFailed(*task)) all.tasks.push_back(std::move(found[task]));
    }
    if (all.tasks.empty()) return tl::unexpected<Error>(loop.Outcome().error());
    // After all runs, because it starts PyTorch's threads, which child processes would lack.
    ETUDE_ASSIGN_OR_RETURN(all.peaks, suite::MeasurePeaks(settings_.run.device, /*threads=*/1));
    ETUDE_RETURN_IF_ERROR(
        ReplaceFile(output_ + "/characterization.json", JsonText(suite::ToJson(all), 1)));
    ETUDE_RETURN_IF_ERROR(ReplaceFile(output_ + "/characterization.html",
                                      ToHtml(suite::MakeCharacterizationPage(all, output_))));
    for (const Table& table : suite::CharacterizationTables(all)) {
      ETUDE_RETURN_IF_ERROR(
          ReplaceFile(fmt::format("{}/{}.csv", output_, table.key), ToCsv(table)));
      if (table.key != "operators") console.Print(ToText(table));
    }
    if (!all.tasks.front().steps.counters) {
      console.Print("no hardware counters: " + all.tasks.front().steps.why_no_counters + "\n");
    }
    console.Print(
        fmt::format("wrote {0}/characterization.json and {0}/characterization.html\n", output_));
    ETUDE_RETURN_IF_ERROR(loop.Outcome());
    return ExitCode::kOk;
  }

 private:
  using Tasks = std::vector<const TaskFacts*>;
  using Found = std::map<const TaskFacts*, Characterization>;

  // Times steps of all tasks with one thread and with all.
  Status TimeSteps(const Tasks& tasks, TaskLoop& loop, Found& found, const Console& console) const {
    const auto store = [&](const TaskFacts& task, RunRecord run) {
      found[&task].steps = std::move(run);
    };
    ETUDE_RETURN_IF_ERROR(RunAll("one-thread", Mode::kSteps, tasks, 1, 1, loop, store, console));
    const int64_t threads = AllThreads();
    if (threads == 1) return {};
    const auto store_all = [&](const TaskFacts& task, RunRecord run) {
      found[&task].steps_of_all = std::move(run);
    };
    return RunAll("all-threads", Mode::kSteps, tasks, 1, threads, loop, store_all, console);
  }

  Status Train(const Tasks& tasks, TaskLoop& loop, Found& found, const Console& console) const {
    const auto store = [&](const TaskFacts& task, RunRecord run) {
      console.Say(suite::ToText(run));
      found[&task].runs.push_back(std::move(run));
    };
    if (seeds_ == 0) return {};
    return RunAll("runs", Mode::kQuality, tasks, seeds_, settings_.run.threads, loop, store,
                  console);
  }

  // Returns the threads of steps with all processors.
  int64_t AllThreads() const {
    return settings_.run.threads.value_or(
        std::max<int64_t>(1, std::thread::hardware_concurrency()));
  }

  // Makes the runs of all tasks with seeds 1 to `seeds` in a folder, and calls store(task, run).
  template <typename Store>
  Status RunAll(std::string_view folder, Mode mode, const Tasks& tasks, int64_t seeds,
                std::optional<int64_t> threads, TaskLoop& loop, Store store,
                const Console& console) const {
    ETUDE_ASSIGN_OR_RETURN(const auto runner,
                           SuiteRunner::Make(settings_, fmt::format("{}/{}", output_, folder)));
    suite::RunOptions options = settings_.run;
    options.threads = threads;
    std::vector<SuiteRunner::Job> jobs = JobsOf(tasks, options, mode, /*first_seed=*/1, seeds);
    std::erase_if(jobs, [&](const SuiteRunner::Job& job) { return loop.HasFailed(*job.task); });
    if (mode == Mode::kQuality) {
      for (SuiteRunner::Job& job : jobs) {
        job.options.evaluate_every =
            job.task->VariationInterval(job.options.scale, job.options.evaluate_every);
      }
    }
    ETUDE_RETURN_IF_ERROR(runner->CheckAll(jobs, mode, console.context()));
    return loop.Run([&](const TaskFacts& task) -> Status {
      for (const SuiteRunner::Job& job : jobs) {
        if (job.task != &task) continue;
        ETUDE_ASSIGN_OR_RETURN(RunRecord run,
                               runner->Run(task, mode, job.options, job.name, console.context()));
        store(task, std::move(run));
      }
      return {};
    });
  }

  // Records a step of each task, unless the folder has it, and reads its work.
  Status RecordSteps(TaskLoop& loop, Found& found, const Console& console) const {
    ETUDE_ASSIGN_OR_RETURN(const auto runner, SuiteRunner::Make(settings_, ""));
    return loop.Run([&](const TaskFacts& task) -> Status {
      ETUDE_ASSIGN_OR_RETURN(found[&task].work, WorkOf(task, *runner, console));
      return {};
    });
  }

  Result<suite::StepWork> WorkOf(const TaskFacts& task, SuiteRunner& runner,
                                 const Console& console) const {
    const std::string folder = fmt::format("{}/captures/{}", output_, task.id);
    std::error_code error;
    if (!std::filesystem::exists(folder + "/job.json", error)) {
      suite::RunOptions options = settings_.run;
      options.seed = 1;
      options.threads = 1;
      ETUDE_RETURN_IF_ERROR(runner.Record(task, options, folder, console.context()));
    }
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder capture,
                           ListCaptureFolder(folder, console.context()));
    const std::string& path = capture.ranks.front().native;
    ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadTrace(path, {}, console.context()));
    auto work = suite::WorkOfStep(trace);
    if (!work) return BadInput(fmt::format("{}: {}", path, work.error().message));
    return work;
  }

  TaskChoice tasks_;
  RunSettings settings_;
  std::string output_;
  int64_t seeds_ = 1;
};

}  // namespace

std::unique_ptr<Command> MakeSuiteCharacterizeCommand() {
  return std::make_unique<SuiteCharacterizeCommand>();
}

}  // namespace etude
