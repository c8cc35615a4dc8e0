#include "src/cli/app/commands.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/text/quantity.h"
#include "src/cli/app/stop_signal.h"
#include "src/cli/app/task_loop.h"
#include "src/cli/simulate/machine_arguments.h"
#include "src/cli/suite/task_recordings.h"
#include "src/formats/io/atomic_file.h"
#include "src/jobs/scaling/data_parallel_step.h"
#include "src/report/tables/simulated/sim_tables.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/suite/results/catalogue.h"
#include "src/suite/results/task_simulations.h"

namespace etude {
namespace {

using suite::TaskFacts;
using suite::TaskSimulation;

// Machines of one rank each on a switch, by links of 100 Gbit/s.
constexpr std::string_view kDefaultNetwork = "Switch(N):12.5GB/s,5us";
constexpr int64_t kMostSimulatedRanks = int64_t{1} << 20;

class SuiteSimulateCommand : public Command {
 public:
  std::string_view name() const override { return "simulate"; }
  std::string_view summary() const override {
    return "simulate the recorded steps of tasks on clusters of data-parallel ranks";
  }

  void Declare(Options& options) override {
    constexpr int64_t kMost = 1'000'000;
    options.Positionals("tasks", &names_, "tasks by name or by AIBench's number", false);
    options.Flag("--all", &all_, "all tasks");
    recordings_.Declare(options, "recordings, as of `etude suite benchmark`");
    RecordingSettings& settings = recordings_.settings;
    options.Value("--warmup", &settings.warmup, "N", "number of warm-up steps before the others",
                  {.least = 1, .most = kMost});
    options.Value("--iterations", &settings.iterations, "N",
                  "number of timed steps of the recording", {.least = 1, .most = kMost});
    options.Output("--report", &report_, "FILE", "also write a page with charts (HTML)", {".html"});
    options.Flag("--json", &json_, "print JSON");
    options.Group("Simulation");
    options.Value("--ranks", &ranks_, "N,…",
                  "numbers of data-parallel ranks (default: 8,64,1024); each rank keeps the "
                  "recorded batch");
    options.Value("--bucket", &simulated_.bucket, "SIZE",
                  "size of gradient buckets, as bucket_cap_mb (default: 25MiB, and 1MiB for the "
                  "first)");
    options.Flag("--with-recording", &simulated_.with_recording,
                 "keep the recording overhead in the times");
    DeclareMachine(
        simulated_.machine,
        fmt::format("network file, or dimensions; the size N, as in \"{}\" (default), is that with "
                    "which the network has the wanted ranks",
                    kDefaultNetwork),
        options);
    options.Group("");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<const TaskFacts*> tasks,
                           suite::ChooseTasks(names_, all_));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> ranks, ReadRanks());
    MachineOptions& machine = simulated_.machine;
    is_default_ = machine.machine.empty() && machine.network.empty();
    if (is_default_) machine.network = kDefaultNetwork;
    for (const int64_t count : ranks) {
      ETUDE_RETURN_IF_ERROR(
          CheckDataParallel(simulated_, count, console.strict(), console.context()));
    }
    ETUDE_RETURN_IF_ERROR(recordings_.CheckFolder(tasks, console.context()));
    ETUDE_RETURN_IF_ERROR(recordings_.MakeFolders({"recordings"}));
    std::vector<TaskSimulation> simulations;
    TaskLoop loop(tasks, console);
    ETUDE_RETURN_IF_ERROR(loop.Run([&](const TaskFacts& task) -> Status {
      TaskSimulation made{.task = std::string(task.id), .recording = recordings_.FolderOf(task)};
      const Status done = Simulate(task, ranks, loop, console, made);
      if (!made.steps.empty()) simulations.push_back(std::move(made));
      return done;
    }));
    if (!report_.empty() && !simulations.empty()) {
      ETUDE_RETURN_IF_ERROR(WriteFile(
          report_, ToHtml(suite::MakeSimulationPage(
                       simulations, machine.machine.empty() ? machine.network : machine.machine,
                       recordings_.output()))));
    }
    Print(simulations, loop, console);
    ETUDE_RETURN_IF_ERROR(loop.Outcome());
    return ExitCode::kOk;
  }

 private:
  Result<std::vector<int64_t>> ReadRanks() const {
    std::optional<std::vector<int64_t>> ranks = ParseRanges(ranks_, kMostSimulatedRanks);
    if (ranks && !ranks->empty()) {
      std::ranges::sort(*ranks);
      const auto rest = std::ranges::unique(*ranks);
      ranks->erase(rest.begin(), rest.end());
      if (ranks->front() > 0) return *std::move(ranks);
    }
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--ranks: found '{}', expected numbers from 1 to {}, such as "
                                 "8,64,1024",
                                 ranks_, FormatCount(uint64_t{kMostSimulatedRanks})));
  }

  // Records the task unless it is, and simulates it. Adds what it finishes to `made`.
  Status Simulate(const TaskFacts& task, const std::vector<int64_t>& ranks, const TaskLoop& loop,
                  const Console& console, TaskSimulation& made) const {
    ETUDE_ASSIGN_OR_RETURN(const auto job, recordings_.Find(task, console.context()));
    made.kept = job.has_value();
    if (!job) ETUDE_RETURN_IF_ERROR(recordings_.Record(task, loop, console));
    loop.Say(job ? "simulating its kept recording" : "simulating it");
    ETUDE_ASSIGN_OR_RETURN(const auto stop, StopSignal::Make());
    RunContext context = console.context();
    context.stop = stop->flag();
    DataParallelOptions options = simulated_;
    options.job = made.recording;
    ETUDE_ASSIGN_OR_RETURN(made.one, SimulateOneRank(options, console.strict(), context));
    // The same file was read with its warnings.
    const RunContext again = context.Unwarned();
    for (const int64_t count : ranks) {
      Result<DataParallelStep> step = SimulateDataParallel(options, count, console.strict(), again);
      if (!step) {
        return MakeError(step.error().code,
                         fmt::format("{}: {}", FormatCount(static_cast<uint64_t>(count), "rank"),
                                     step.error().message));
      }
      made.steps.push_back(*std::move(step));
    }
    return {};
  }

  void Print(const std::vector<TaskSimulation>& tasks, const TaskLoop& loop,
             const Console& console) const {
    if (json_) {
      console.Print(JsonText(JsonOf(tasks, loop), 1));
      return;
    }
    std::string text = ToText(suite::ScalingTable(tasks));
    if (!tasks.empty()) {
      const SimMachine& machine = tasks.front().steps.back().machine;
      text +=
          fmt::format("machine of {}, {}{}:\n{}",
                      FormatCount(static_cast<uint64_t>(tasks.front().steps.back().ranks), "rank"),
                      NameOf(machine), is_default_ ? ", default network" : "", ToText(machine));
    }
    for (const std::string& note : suite::NotesOf(tasks)) text += "note: " + note + "\n";
    console.Print(text);
  }

  // Returns the machine file with the name of the model, or the latter alone.
  std::string NameOf(const SimMachine& machine) const {
    const std::string& file = simulated_.machine.machine;
    return file.empty() ? machine.ModelName() : fmt::format("{} ({})", file, machine.ModelName());
  }

  nlohmann::ordered_json JsonOf(const std::vector<TaskSimulation>& tasks,
                                const TaskLoop& loop) const {
    const MachineOptions& machine = simulated_.machine;
    nlohmann::ordered_json json = {{"format", "etude-suite-simulations"},
                                   {"version", 1},
                                   {"scale", recordings_.settings.scale}};
    if (!tasks.empty()) json["model"] = tasks.front().steps.back().machine.ModelName();
    if (machine.machine.empty()) {
      json["network"] = machine.network;
    } else {
      json["machine"] = machine.machine;
    }
    json["tasks"] = nlohmann::ordered_json::array();
    for (const TaskSimulation& task : tasks) json["tasks"].push_back(suite::ToJson(task));
    json["failed"] = loop.FailuresJson();
    return json;
  }

  std::vector<std::string> names_;
  bool all_ = false;
  TaskRecordings recordings_;
  std::string ranks_ = "8,64,1024";
  DataParallelOptions simulated_;
  std::string report_;
  bool is_default_ = false;  // whether the network is the default one
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeSuiteSimulateCommand() {
  return std::make_unique<SuiteSimulateCommand>();
}

}  // namespace etude
