#include "src/cli/app/commands.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/cli/app/installation.h"
#include "src/cli/app/task_loop.h"
#include "src/cli/record/compare_run.h"
#include "src/cli/suite/program_output.h"
#include "src/cli/suite/task_recordings.h"
#include "src/report/certificate/certificate.h"
#include "src/report/text/json_output.h"
#include "src/suite/results/catalogue.h"
#include "src/suite/results/task_benchmarks.h"

namespace etude {
namespace {

namespace fs = std::filesystem;
using suite::TaskBenchmark;
using suite::TaskFacts;

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
    recordings_.Declare(options, "recordings, benchmarks and certificates");
    RecordingSettings& settings = recordings_.settings;
    options.Value("--ranks", &settings.ranks, "N",
                  "number of data-parallel processes; the benchmark has as many",
                  {.least = 1, .most = 1024});
    options.Flag("--experimental", &experimental_,
                 "allow devices other than CPU and CUDA, where benchmarks are untested");
    options.Choice("--language", &language_, {"c++", "python"},
                   "program of the benchmark that is compared with the task; c++ is built first");
    options.Value("--python", &python_, "PYTHON",
                  "Python with torch, which the benchmark is built with or runs on (default: "
                  "python3)");
    options.Value("--warmup", &settings.warmup, "N",
                  "number of warm-up steps before recorded, timed or compared steps",
                  {.least = 1, .most = kMost});
    options.Value("--iterations", &settings.iterations, "N",
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
    ETUDE_RETURN_IF_ERROR(recordings_.CheckFolder(tasks, console.context()));
    if (python_.empty()) python_ = WheelPython().value_or("python3");
    ETUDE_RETURN_IF_ERROR(FindTorch());
    ETUDE_RETURN_IF_ERROR(recordings_.MakeFolders({"recordings", "benchmarks", "certificates"}));
    std::vector<TaskBenchmark> benchmarks;
    TaskLoop loop(tasks, console);
    ETUDE_RETURN_IF_ERROR(loop.Run([&](const TaskFacts& task) -> Status {
      ETUDE_ASSIGN_OR_RETURN(TaskBenchmark made, Make(task, loop, console));
      benchmarks.push_back(std::move(made));
      return {};
    }));
    Print(benchmarks, loop, console);
    ETUDE_RETURN_IF_ERROR(loop.Outcome());
    return std::ranges::all_of(benchmarks, &TaskBenchmark::met) ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  // Paths of a task below the output folder.
  std::string BenchmarkOf(const TaskFacts& task) const {
    return fmt::format("{}/benchmarks/{}", recordings_.output(), task.id);
  }
  std::string CertificateOf(const TaskFacts& task) const {
    return fmt::format("{}/certificates/{}.json", recordings_.output(), task.id);
  }

  // Sets `torch_` to the folder of Python's torch.
  Status FindTorch() {
    ETUDE_ASSIGN_OR_RETURN(
        const ProgramOutput ran,
        RunProgram({python_, "-c",
                    "import importlib.util as u; s = u.find_spec('torch'); "
                    "print(s.submodule_search_locations[0] if s else '', end='')"}));
    if (ran.end.exit_code() != 0 || ran.text.empty()) {
      return Unavailable(python_ +
                         ": found no torch, which the benchmarks need; --python PYTHON names a "
                         "Python with torch");
    }
    torch_ = ran.text;
    return {};
  }

  Result<TaskBenchmark> Make(const TaskFacts& task, const TaskLoop& loop,
                             const Console& console) const {
    TaskBenchmark made{.task = std::string(task.id),
                       .recording = recordings_.FolderOf(task),
                       .benchmark = BenchmarkOf(task),
                       .certificate = CertificateOf(task)};
    ETUDE_ASSIGN_OR_RETURN(const auto job, recordings_.Find(task, console.context()));
    std::error_code error;
    if (job && fs::exists(made.certificate, error)) {
      ETUDE_ASSIGN_OR_RETURN(made.fidelity, ReadCertificate(made.certificate, console.context()));
      made.kept = Suffices(made.fidelity, task, job->id);
      if (made.kept) {
        loop.Say("kept, with its certificate of " + made.fidelity.run.measured);
        return made;
      }
    }
    if (!job) ETUDE_RETURN_IF_ERROR(recordings_.Record(task, loop, console));
    ETUDE_RETURN_IF_ERROR(Write(task, loop, console));
    if (language_ == "c++") ETUDE_RETURN_IF_ERROR(Build(task, loop));
    ETUDE_RETURN_IF_ERROR(Compare(task, loop, console));
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

  Status Write(const TaskFacts& task, const TaskLoop& loop, const Console& console) const {
    std::vector<std::string> words = {ProgramPath(),
                                      "benchmark",
                                      recordings_.FolderOf(task),
                                      "--output",
                                      BenchmarkOf(task),
                                      "--warmup",
                                      std::to_string(recordings_.settings.warmup),
                                      "--iterations",
                                      std::to_string(recordings_.settings.iterations)};
    if (recordings_.settings.ranks > 1) words.insert(words.end(), {"--ranks", "all"});
    if (recordings_.settings.device != "cpu") {
      words.insert(words.end(), {"--device", recordings_.settings.device});
    }
    recordings_.AddLibraries(words);
    if (experimental_) words.emplace_back("--experimental");
    if (!console.context().warn) words.emplace_back("--quiet");
    return RunPart(loop, words, "writing the benchmark", /*may_say_no=*/true);
  }

  Status Build(const TaskFacts& task, const TaskLoop& loop) const {
    const std::string folder = BenchmarkOf(task);
    const std::string build = folder + "/build";
    std::error_code ignored;
    fs::remove_all(build, ignored);  // settings of an earlier or another user's build
    ETUDE_RETURN_IF_ERROR(RunPart(loop, {"cmake", "-S", folder, "-B", build, "-DTORCH=" + torch_},
                                  "configuring the benchmark"));
    return RunPart(loop, {"cmake", "--build", build}, "building the benchmark");
  }

  Status Compare(const TaskFacts& task, const TaskLoop& loop, const Console& console) const {
    loop.Say("comparing it with the task");
    CompareRunOptions options = compare_;
    options.path = recordings_.FolderOf(task);
    options.command = recordings_.CommandHere(task);
    options.benchmark = BenchmarkOf(task) + std::string(ProgramName());
    options.python = python_;
    if (recordings_.settings.device != "cpu") options.device = recordings_.settings.device;
    options.libraries = recordings_.settings.libraries;
    options.warmup = recordings_.settings.warmup;
    const std::string certificate = CertificateOf(task);
    options.certificates = {certificate, fs::path(certificate).replace_extension(".html")};
    ETUDE_RETURN_IF_ERROR(MeasureByRunning(options, console));
    return {};
  }

  void Print(const std::vector<TaskBenchmark>& benchmarks, const TaskLoop& loop,
             const Console& console) const {
    if (!json_) {
      console.Print(ToText(suite::FidelityTable(benchmarks)));
      return;
    }
    nlohmann::ordered_json json = {{"format", "etude-suite-benchmarks"},
                                   {"version", 1},
                                   {"scale", recordings_.settings.scale}};
    json["tasks"] = nlohmann::ordered_json::array();
    for (const TaskBenchmark& benchmark : benchmarks) {
      json["tasks"].push_back(suite::ToJson(benchmark));
    }
    json["failed"] = loop.FailuresJson();
    console.Print(JsonText(json, 1));
  }

  std::vector<std::string> names_;
  bool all_ = false;
  TaskRecordings recordings_;
  bool experimental_ = false;
  std::string language_ = "c++";
  std::string python_;
  CompareRunOptions compare_;
  bool json_ = false;
  std::string torch_;  // folder of Python's torch
};

}  // namespace

std::unique_ptr<Command> MakeSuiteBenchmarkCommand() {
  return std::make_unique<SuiteBenchmarkCommand>();
}

}  // namespace etude
