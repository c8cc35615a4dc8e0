#include "src/cli/app/commands.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/text/folder_names.h"
#include "src/cli/app/installation.h"
#include "src/cli/record/compare_run.h"
#include "src/cli/record/process_tree.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/job/job_json.h"
#include "src/jobs/output_files.h"
#include "src/report/certificate/certificate.h"
#include "src/report/text/json_output.h"
#include "src/suite/results/catalogue.h"
#include "src/suite/results/run_record.h"
#include "src/suite/results/task_benchmarks.h"

namespace etude {
namespace {

namespace fs = std::filesystem;
using suite::TaskBenchmark;
using suite::TaskFacts;

constexpr std::array kFolders = {"recordings", "benchmarks", "certificates"};
// How a program ended, and its standard output.
struct Ran {
  ChildEnd end;
  std::string output;
};

// Runs a program and returns its standard output. kUnavailable for a missing command.
Result<Ran> RunProgram(const std::vector<std::string>& command) {
  const int output = memfd_create("output", MFD_CLOEXEC);
  if (output < 0) return Unavailable("cannot make memory for the output of a program");
  const auto run = [&]() -> Result<Ran> {
    ETUDE_ASSIGN_OR_RETURN(const auto tree, ProcessTree::Open());
    ETUDE_ASSIGN_OR_RETURN(const pid_t process,
                           tree->Start({.command = command, .output = output}, [](pid_t) {}));
    while (!tree->ended(process)) {
      ETUDE_RETURN_IF_ERROR(tree->AwaitEnd(process, std::chrono::hours(1)));
    }
    Ran ran{.end = *tree->ended(process)};
    std::array<char, 4096> part{};
    for (ssize_t size = 0; (size = pread(output, part.data(), part.size(),
                                         static_cast<off_t>(ran.output.size()))) > 0;) {
      ran.output.append(part.data(), static_cast<size_t>(size));
    }
    return ran;
  };
  auto ran = run();
  close(output);
  return ran;
}

class SuiteBenchmarkCommand : public Command {
 public:
  std::string_view name() const override { return "benchmark"; }
  std::string_view summary() const override {
    return "turn tasks into standalone benchmarks, each with a certificate of its fidelity";
  }

  void Declare(Options& options) override {
    constexpr int64_t kMost = 1'000'000;
    options.Positionals("tasks", &names_, "tasks by name or by AIBench's number", false);
    options.Flag("--all", &all_, "all tasks");
    options.Output("-o,--output", &output_, "FOLDER",
                   "folder for recordings, benchmarks and certificates; existing ones are not "
                   "repeated",
                   {});
    options.Required("--output");
    options.Choice("--scale", &scale_, {"smoke", "paper"},
                   "smoke: a small task of a minute; paper: the published task");
    options.Value("--seed", &seed_, "N", "seed of the recorded run", {.least = 0});
    options.Value("--batch", &batch_, "N", "global batch size: samples per step over all ranks",
                  {.least = 1, .most = kMost});
    options.Value("--threads", &threads_, "N", "number of threads in PyTorch's pool per rank",
                  {.least = 1, .most = 1024});
    options.Value("--ranks", &ranks_, "N",
                  "number of data-parallel processes; the benchmark has as many",
                  {.least = 1, .most = 1024});
    options.Choice("--precision", &precision_, {"fp32", "bf16", "fp16"},
                   "precision of operators; weights are float32");
    options.Value(
        "--data", &data_, "FOLDER",
        "folder with the data sets (default: $ETUDE_SUITE_DATA, else ~/.cache/etude/suite)");
    options.Choice("--language", &language_, {"c++", "python"},
                   "program of the benchmark that is compared with the task; c++ is built first");
    options.Value("--python", &python_, "PYTHON",
                  "Python with torch, which the benchmark is built with or runs on (default: "
                  "python3)");
    options.Value("--warmup", &warmup_, "N",
                  "number of warm-up steps before recorded, timed or compared steps",
                  {.least = 1, .most = kMost});
    options.Value("--iterations", &iterations_, "N",
                  "number of timed steps of the recording and of the benchmark's trial run",
                  {.least = 1, .most = kMost});
    options.Value("--pairs", &compare_.pairs, "N", "number of measured pairs of steps",
                  {.least = 1, .most = 100'000});
    options.Value("--starts", &compare_.starts, "N",
                  "number of times to start task and benchmark; the pairs are divided among them",
                  {.least = 1, .most = 1000});
    options.Choice("--until", &compare_.until, {"decided"},
                   "add pairs and starts until no bar is undetermined, up to ten times --pairs");
    options.Value("--timeout", &compare_.timeout_s, "SECONDS", "max seconds of a compared step",
                  {.least = 1, .most = kMost});
    options.Flag("--json", &json_, "print JSON");
    options.Footer(
        "Exit code 1 if operators are missing in a benchmark, or if a bar of its certificate is "
        "not met.");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<const TaskFacts*> tasks,
                           suite::ChooseTasks(names_, all_));
    ETUDE_RETURN_IF_ERROR(CheckFolder(tasks, console.context()));
    if (python_.empty()) python_ = WheelPython().value_or("python3");
    ETUDE_RETURN_IF_ERROR(FindTorch());
    for (const char* folder : kFolders) {
      ETUDE_RETURN_IF_ERROR(MakeFolder(fmt::format("{}/{}", output_, folder)));
    }
    std::vector<TaskBenchmark> benchmarks;
    std::vector<std::pair<std::string_view, Error>> failed;
    for (const TaskFacts* task : tasks) {
      where_ = fmt::format("{} ({} of {})", task->id, benchmarks.size() + failed.size() + 1,
                           tasks.size());
      Result<TaskBenchmark> made = Make(*task, console);
      if (made) {
        benchmarks.push_back(*std::move(made));
        continue;
      }
      if (tasks.size() == 1 || made.error().code == ErrorCode::kInterrupted) {
        return tl::unexpected<Error>(made.error());
      }
      console.Complain(fmt::format("{}: {}", task->id, made.error().message));
      failed.emplace_back(task->id, made.error());
    }
    Print(benchmarks, failed, console);
    if (!failed.empty()) {
      std::vector<std::string_view> names;
      for (const auto& [name, error] : failed) names.push_back(name);
      return MakeError(failed.front().second.code,
                       fmt::format("{} of {} tasks failed: {}", failed.size(), tasks.size(),
                                   fmt::join(names, ", ")));
    }
    return std::ranges::all_of(benchmarks, &TaskBenchmark::met) ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  // Paths of a task below the output folder.
  std::string RecordingOf(const TaskFacts& task) const {
    return fmt::format("{}/recordings/{}", output_, task.id);
  }
  std::string BenchmarkOf(const TaskFacts& task) const {
    return fmt::format("{}/benchmarks/{}", output_, task.id);
  }
  std::string CertificateOf(const TaskFacts& task) const {
    return fmt::format("{}/certificates/{}.json", output_, task.id);
  }

  // Returns the command that runs the task, as in the job.json of its recording.
  std::vector<std::string> CommandFor(const TaskFacts& task) const {
    NamedTexts settings;
    if (batch_) settings["batch"] = std::to_string(*batch_);
    if (threads_) settings["threads"] = std::to_string(*threads_);
    return CommandOf(suite::RunRecord{.task = std::string(task.id),
                                      .scale = scale_,
                                      .seed = seed_,
                                      .device = "cpu",
                                      .precision = precision_,
                                      .ranks = ranks_,
                                      .settings = settings});
  }
  // Returns it with this program and the data folder.
  std::vector<std::string> CommandHere(const TaskFacts& task) const {
    std::vector<std::string> words = CommandFor(task);
    words.front() = ProgramPath();
    if (!data_.empty()) words.insert(words.end(), {"--data", data_});
    return words;
  }

  // Checks before any work that the output folder is new, or has recordings with these settings.
  Status CheckFolder(const std::vector<const TaskFacts*>& tasks, const RunContext& context) const {
    std::error_code error;
    if (!fs::exists(output_, error)) return {};
    ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(output_));
    const bool is_own = std::ranges::any_of(
        names, [](const std::string& name) { return std::ranges::count(kFolders, name) != 0; });
    if (!names.empty() && !is_own) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("{}: found other files, expected a new folder, or one that "
                                   "`etude suite benchmark` wrote",
                                   output_));
    }
    for (const TaskFacts* task : tasks) {
      ETUDE_ASSIGN_OR_RETURN(const auto job, FindRecording(*task, context));
      const std::vector<std::string> command = CommandFor(*task);
      if (!job || job->command == command) continue;
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("{}: found a recording of `{}`, expected `{}`; use another --output",
                      RecordingOf(*task), ShellLine(job->command), ShellLine(command)));
    }
    return {};
  }

  // Returns job.json of the task's recording; nullopt if there is no complete recording.
  Result<std::optional<JobFile>> FindRecording(const TaskFacts& task,
                                               const RunContext& context) const {
    const std::string path = RecordingOf(task) + "/" + std::string(kJobFile);
    std::error_code error;
    if (!fs::exists(path, error)) return std::nullopt;
    ETUDE_ASSIGN_OR_RETURN(JobFile job, ReadJobFile(path, context));
    return std::optional(std::move(job));
  }

  // Sets `torch_` to the folder of Python's torch.
  Status FindTorch() {
    ETUDE_ASSIGN_OR_RETURN(
        const Ran ran, RunProgram({python_, "-c",
                                   "import importlib.util as u; s = u.find_spec('torch'); "
                                   "print(s.submodule_search_locations[0] if s else '', end='')"}));
    if (ran.end.exit_code() != 0 || ran.output.empty()) {
      return Unavailable(python_ +
                         ": found no torch, which the benchmarks need; --python PYTHON names a "
                         "Python with torch");
    }
    torch_ = ran.output;
    return {};
  }

  Result<TaskBenchmark> Make(const TaskFacts& task, const Console& console) const {
    TaskBenchmark made{.task = std::string(task.id),
                       .recording = RecordingOf(task),
                       .benchmark = BenchmarkOf(task),
                       .certificate = CertificateOf(task)};
    ETUDE_ASSIGN_OR_RETURN(const auto job, FindRecording(task, console.context()));
    std::error_code error;
    if (job && fs::exists(made.certificate, error)) {
      ETUDE_ASSIGN_OR_RETURN(made.fidelity, ReadCertificate(made.certificate, console.context()));
      made.kept = Suffices(made.fidelity, task, job->id);
      if (made.kept) {
        Say("kept, with its certificate of " + made.fidelity.run.measured, console);
        return made;
      }
    }
    if (!job) ETUDE_RETURN_IF_ERROR(Record(task, console));
    ETUDE_RETURN_IF_ERROR(Write(task, console));
    if (language_ == "c++") ETUDE_RETURN_IF_ERROR(Build(task, console));
    ETUDE_RETURN_IF_ERROR(Compare(task, console));
    ETUDE_ASSIGN_OR_RETURN(made.fidelity, ReadCertificate(made.certificate, console.context()));
    return made;
  }

  // Returns whether a certificate is of this recording and program, with all pairs that are wanted.
  bool Suffices(const Certificate& certificate, const TaskFacts& task,
                std::string_view recording) const {
    const RunComparison& run = certificate.run;
    return certificate.recording == recording &&
           run.benchmark == std::string(task.id) + std::string(ProgramName()) &&
           run.pairs_wanted >= compare_.pairs && run.starts >= compare_.starts &&
           !WantsMorePairs(compare_, run);
  }

  // Returns the program's name in the folder of the benchmark.
  std::string_view ProgramName() const {
    return language_ == "c++" ? "/build/benchmark" : "/benchmark.py";
  }

  void Say(std::string_view what, const Console& console) const {
    console.Say(fmt::format("etude: {}: {}", where_, what));
  }

  // Runs a program as a part of the work on a task. Shows its output if it fails, which for some
  // programs exit code 1 does not mean.
  Status RunPart(const std::vector<std::string>& command, std::string_view part,
                 const Console& console, bool may_say_no = false) const {
    Say(part, console);
    ETUDE_ASSIGN_OR_RETURN(const Ran ran, RunProgram(command));
    const int code = ran.end.exit_code();
    if (code == 0 || (may_say_no && code == static_cast<int>(ExitCode::kNo))) return {};
    if (!ran.output.empty()) console.Complain(ran.output);
    return MakeError(ran.end.error_code(), fmt::format("{} failed ({})", part, ran.end.failure()));
  }

  Status Record(const TaskFacts& task, const Console& console) const {
    std::vector<std::string> words = CommandHere(task);
    words.insert(words.end(),
                 {"--record", output_ + "/recordings", "--warmup", std::to_string(warmup_),
                  "--iterations", std::to_string(iterations_)});
    if (!console.context().warn) words.emplace_back("--quiet");
    return RunPart(words, "recording a step", console);
  }

  Status Write(const TaskFacts& task, const Console& console) const {
    std::vector<std::string> words = {ProgramPath(),
                                      "benchmark",
                                      RecordingOf(task),
                                      "--output",
                                      BenchmarkOf(task),
                                      "--warmup",
                                      std::to_string(warmup_),
                                      "--iterations",
                                      std::to_string(iterations_)};
    if (ranks_ > 1) words.insert(words.end(), {"--ranks", "all"});
    if (!console.context().warn) words.emplace_back("--quiet");
    return RunPart(words, "writing the benchmark", console, /*may_say_no=*/true);
  }

  Status Build(const TaskFacts& task, const Console& console) const {
    const std::string folder = BenchmarkOf(task);
    const std::string build = folder + "/build";
    std::error_code ignored;
    fs::remove_all(build, ignored);  // settings of an earlier or another user's build
    ETUDE_RETURN_IF_ERROR(RunPart({"cmake", "-S", folder, "-B", build, "-DTORCH=" + torch_},
                                  "configuring the benchmark", console));
    return RunPart({"cmake", "--build", build}, "building the benchmark", console);
  }

  Status Compare(const TaskFacts& task, const Console& console) const {
    Say("comparing it with the task", console);
    CompareRunOptions options = compare_;
    options.path = RecordingOf(task);
    options.command = CommandHere(task);
    options.benchmark = BenchmarkOf(task) + std::string(ProgramName());
    options.python = python_;
    options.warmup = warmup_;
    const std::string certificate = CertificateOf(task);
    options.certificates = {certificate, fs::path(certificate).replace_extension(".html")};
    ETUDE_RETURN_IF_ERROR(MeasureByRunning(options, console));
    return {};
  }

  void Print(const std::vector<TaskBenchmark>& benchmarks,
             const std::vector<std::pair<std::string_view, Error>>& failed,
             const Console& console) const {
    if (!json_) {
      console.Print(ToText(suite::FidelityTable(benchmarks)));
      return;
    }
    nlohmann::ordered_json json = {
        {"format", "etude-suite-benchmarks"}, {"version", 1}, {"scale", scale_}};
    json["tasks"] = nlohmann::ordered_json::array();
    for (const TaskBenchmark& benchmark : benchmarks) {
      json["tasks"].push_back(suite::ToJson(benchmark));
    }
    json["failed"] = nlohmann::ordered_json::array();
    for (const auto& [name, error] : failed) {
      json["failed"].push_back({{"id", name},
                                {"exit_code", static_cast<int>(ExitCodeOf(error.code))},
                                {"error", error.message}});
    }
    console.Print(JsonText(json, 1));
  }

  std::vector<std::string> names_;
  bool all_ = false;
  std::string output_;
  std::string scale_ = "smoke";
  int64_t seed_ = 1;
  std::optional<int64_t> batch_;
  std::optional<int64_t> threads_;
  int64_t ranks_ = 1;
  std::string precision_ = "fp32";
  std::string data_;
  std::string language_ = "c++";
  std::string python_;
  int64_t warmup_ = 5;
  int64_t iterations_ = 20;
  CompareRunOptions compare_;
  bool json_ = false;
  std::string torch_;  // folder of Python's torch
  std::string where_;  // "learning-to-rank (2 of 19)"
};

}  // namespace

std::unique_ptr<Command> MakeSuiteBenchmarkCommand() {
  return std::make_unique<SuiteBenchmarkCommand>();
}

}  // namespace etude
