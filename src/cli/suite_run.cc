#include "src/cli/suite_run.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/cli/output_files.h"
#include "src/cli/rank_processes.h"
#include "src/formats/atomic_file.h"
#include "src/report/table.h"
#include "src/suite/catalogue.h"
#include "src/suite/run.h"
#include "src/suite/score.h"
#include "src/torch/operator_library.h"
#include "src/torch/rank_group.h"

namespace etude {
namespace {

using nlohmann::ordered_json;
using suite::RunOptions;
using suite::RunRecord;
using suite::Scale;
using suite::Score;
using suite::TaskFacts;

constexpr int64_t kMostSteps = 1'000'000'000;
constexpr int64_t kMostSeeds = 1000;

// Set by Ctrl-C; the runs look at it and keep what they have. Processes of ranks have it too.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void NoteInterrupt(int /*signal*/) { interrupted = true; }

// Ctrl-C is noted while this lives; a second one ends the program.
class InterruptGuard {
 public:
  InterruptGuard() {
    struct sigaction noted {};
    noted.sa_handler = NoteInterrupt;
    noted.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &noted, &before_);
  }
  ~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_ {};
};

// A folder that is gone with this.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> Make() {
    std::error_code error;
    std::string name =
        (std::filesystem::temp_directory_path(error) / "etude-suite.XXXXXX").string();
    if (error || mkdtemp(name.data()) == nullptr) {
      return MakeError(ErrorCode::kIo, name + ": cannot make a folder for temporary files");
    }
    return TemporaryFolder(std::move(name));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Result<double> ParseNumber(std::string_view option, std::string_view text) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec == std::errc() && end.ptr == text.data() + text.size() && value > 0) return value;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: found '{}', expected a number above 0", option, text));
}

// Where data sets are unless --data says so: $ETUDE_SUITE_DATA, else in the user's cache.
std::string DefaultDataFolder() {
  if (const char* named = std::getenv("ETUDE_SUITE_DATA"); named != nullptr && *named != '\0') {
    return named;
  }
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::string(cache) + "/etude/suite";
  }
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.cache/etude/suite";
}

class SuiteRunCommand : public Command {
 public:
  std::string_view name() const override { return "run"; }
  std::string_view summary() const override { return "train tasks and time them"; }

  void Declare(Options& options) override {
    options.Positionals("tasks", &names_, "tasks by name or by AIBench's number", false);
    options.Flag("--all", &all_, "all tasks");
    options.Choice("--scale", &scale_, {"smoke", "paper"},
                   "a small task that takes a minute, or the published one");
    options.Choice("--mode", &mode_, {"quality", "steps"},
                   "train to the target quality, or time steps");
    options.Value("--seed", &seed_, "N", "seed of the first run", {.least = 0});
    options.Value("--seeds", &seeds_, "N", "runs, each with a seed of its own",
                  {.least = 1, .most = kMostSeeds});
    options.Value("--device", &run_.device, "DEVICE",
                  "cpu, cuda:N, or another that PyTorch knows by name");
    options.Values("--library", &libraries_, "FILE",
                   "load a shared library, of a device for example; its code runs");
    options.Value("--ranks", &ranks_, "N", "processes that train one model, data-parallel",
                  {.least = 1, .most = 1024});
    options.Value("--threads", &run_.threads, "N", "threads of PyTorch's pool in each rank",
                  {.least = 1, .most = 1024});
    options.Choice("--precision", &precision_, {"fp32", "bf16", "fp16"},
                   "what operators compute in; weights are float32");
    options.Value("--loss-scale", &loss_scale_, "FACTOR",
                  "a fixed one (default: dynamic for fp16, none for others)");
    options.Value("--batch", &run_.batch, "N", "samples a step, of all ranks together",
                  {.least = 1, .most = kMostSteps});
    options.Choice("--optimizer", &optimizer_, {"", "sgd", "adam", "adamw", "rmsprop"},
                   "another than the task's");
    options.Value("--rate", &rate_, "RATE", "another learning rate");
    options.Value("--target", &target_, "QUALITY", "another target");
    options.Value("--evaluate-every", &run_.evaluate_every, "N", "steps between evaluations",
                  {.least = 1, .most = kMostSteps});
    options.Value("--most-steps", &run_.most_steps, "N", "steps after which the target is missed",
                  {.least = 1, .most = kMostSteps});
    options.Value("--warmup", &run_.warmup, "N", "steps mode: steps before the timed ones",
                  {.least = 0, .most = kMostSteps});
    options.Value("--iterations", &run_.timed_steps, "N", "steps mode: timed steps",
                  {.least = 1, .most = kMostSteps});
    options.Value(
        "--data", &run_.data, "FOLDER",
        "where the data sets are (default: $ETUDE_SUITE_DATA, else ~/.cache/etude/suite)");
    options.Value("-o,--output", &output_, "FOLDER",
                  "keep the runs there; those that are there already are not run again");
    options.Flag("--shuffled-labels", &run_.shuffled_labels,
                 "a test of the target: nothing can be learned, it must be missed");
    options.Flag("--frozen", &run_.frozen,
                 "a test of the target: the weights stay, it must be missed");
    options.Flag("--json", &json_, "print JSON");
    options.Footer("Exit code 1 if a target was missed.");
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<const TaskFacts*> tasks, ChooseTasks());
    ETUDE_RETURN_IF_ERROR(ReadOptions());
    std::optional<TemporaryFolder> temporary;
    std::string folder = output_;
    if (folder.empty()) {
      ETUDE_ASSIGN_OR_RETURN(TemporaryFolder made, TemporaryFolder::Make());
      temporary.emplace(std::move(made));
      folder = temporary->path();
    } else {
      ETUDE_RETURN_IF_ERROR(MakeFolder(folder));
    }
    const InterruptGuard guard;
    std::vector<Score> scores;
    for (const TaskFacts* task : tasks) {
      std::vector<RunRecord> runs;
      for (int64_t seed = seed_; seed < seed_ + seeds_; ++seed) {
        ETUDE_ASSIGN_OR_RETURN(runs.emplace_back(), RunOne(*task, seed, folder, console));
        if (!json_) console.Print(Line(runs.back()));
      }
      scores.push_back(suite::ScoreOf(std::move(runs)));
    }
    if (json_) console.Print(ToJson(scores).dump(1) + "\n");
    if (mode_ == "steps") return ExitCode::kOk;
    return std::ranges::all_of(scores, &Score::reached) ? ExitCode::kOk : ExitCode::kNo;
  }

 private:
  Result<std::vector<const TaskFacts*>> ChooseTasks() const {
    std::vector<const TaskFacts*> tasks;
    if (all_ == !names_.empty()) {
      return MakeError(ErrorCode::kUsage,
                       "expected names of tasks, or --all; `etude suite list` "
                       "shows them");
    }
    if (all_) {
      for (const TaskFacts& task : suite::Catalogue()) tasks.push_back(&task);
      return tasks;
    }
    for (const std::string& name : names_) {
      const TaskFacts* task = suite::FindTask(name);
      if (task == nullptr) {
        std::vector<std::string> known;
        for (const TaskFacts& each : suite::Catalogue()) known.emplace_back(each.id);
        return MakeError(ErrorCode::kUsage,
                         fmt::format("no task '{}'{}", name, DidYouMean(name, known)));
      }
      tasks.push_back(task);
    }
    return tasks;
  }

  Status ReadOptions() {
    run_.scale = scale_ == "paper" ? Scale::kPaper : Scale::kSmoke;
    run_.precision = *suite::PrecisionFromName(precision_);
    if (!loss_scale_.empty()) {
      ETUDE_ASSIGN_OR_RETURN(run_.loss_scale, ParseNumber("--loss-scale", loss_scale_));
    }
    if (!rate_.empty()) {
      ETUDE_ASSIGN_OR_RETURN(run_.rate, ParseNumber("--rate", rate_));
    }
    if (!target_.empty()) {
      ETUDE_ASSIGN_OR_RETURN(run_.target, ParseNumber("--target", target_));
    }
    if (!optimizer_.empty()) run_.optimizer = suite::OptimizerKindFromName(optimizer_);
    if (run_.data.empty()) run_.data = DefaultDataFolder();
    if (run_.device.empty()) run_.device = "cpu";
    return {};
  }

  // Trains once, or takes the run that is kept already.
  Result<RunRecord> RunOne(const TaskFacts& task, int64_t seed, const std::string& folder,
                           const Console& console) {
    const std::string stem = fmt::format("{}/{}.{}.{}.{}", folder, task.id, scale_, mode_, seed);
    const std::string path = stem + ".json";
    RunContext context = console.context();
    context.stop = &interrupted;
    std::error_code error;
    if (std::filesystem::exists(path, error)) {
      ETUDE_ASSIGN_OR_RETURN(RunRecord kept, suite::ReadRunRecord(path, context));
      ETUDE_RETURN_IF_ERROR(CheckKept(path, kept));
      return kept;
    }
    if (interrupted) return MakeError(ErrorCode::kInterrupted, "stopped");
    RunOptions options = run_;
    options.seed = static_cast<uint64_t>(seed);
    if (!output_.empty()) options.checkpoint = stem + ".safetensors";

    std::vector<int64_t> ranks(static_cast<size_t>(ranks_));
    std::iota(ranks.begin(), ranks.end(), 0);
    ETUDE_ASSIGN_OR_RETURN(const MeetingPlace place, MeetingPlace::Open());
    const auto ran = RunRanks(ranks, 0, [&](int64_t rank) -> Result<ExitCode> {
      return RunRank(task, options, rank, place, path, context);
    });
    close(place.listener);
    if (!ran) return tl::unexpected<Error>(ran.error());
    std::filesystem::remove(options.checkpoint, error);
    return suite::ReadRunRecord(path, context);
  }

  // In a process of its own; the first rank writes the record.
  Result<ExitCode> RunRank(const TaskFacts& task, const RunOptions& options, int64_t rank,
                           const MeetingPlace& place, const std::string& path,
                           RunContext context) const {
    for (const std::string& library : libraries_) {
      ETUDE_RETURN_IF_ERROR(LoadOperatorLibrary(library));
    }
    if (rank != 0) context.progress = nullptr;
    std::vector<int64_t> present(static_cast<size_t>(ranks_));
    std::iota(present.begin(), present.end(), 0);
    std::optional<RankGroup> group;
    std::unique_ptr<suite::DataParallel> parallel;
    if (ranks_ > 1) {
      group.emplace(RankGroup::Member{
          .rank = rank, .size = ranks_, .present = present, .lead = 0, .place = place});
      ETUDE_ASSIGN_OR_RETURN(parallel, suite::DataParallel::Connect(*group));
    }
    ETUDE_ASSIGN_OR_RETURN(const RunRecord record,
                           mode_ == "steps"
                               ? suite::RunSteps(task, options, parallel.get(), context)
                               : suite::RunToQuality(task, options, parallel.get(), context));
    if (group) ETUDE_RETURN_IF_ERROR(group->Meet());
    if (rank == 0) ETUDE_RETURN_IF_ERROR(WriteFile(path, suite::ToJson(record).dump(1) + "\n"));
    return ExitCode::kOk;
  }

  // A run that is kept must be of what is asked for.
  Status CheckKept(const std::string& path, const RunRecord& kept) const {
    const auto differs = [&](std::string_view what, const auto& there, const auto& here) -> Status {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("{}: a run with {} {}, expected {}; --output another folder",
                                   path, what, there, here));
    };
    if (kept.device != run_.device) return differs("device", kept.device, run_.device);
    if (kept.precision != precision_) return differs("precision", kept.precision, precision_);
    if (kept.ranks != ranks_) return differs("ranks", kept.ranks, ranks_);
    if (run_.batch && kept.batch != *run_.batch) return differs("batch", kept.batch, *run_.batch);
    return {};
  }

  static std::string Line(const RunRecord& run) {
    if (run.mode == "steps") {
      std::vector<double> times = run.step_seconds;
      const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
      std::ranges::nth_element(times, middle);
      return fmt::format("{}, seed {}: {:.2f} ms a step (median of {}), {:.1f} samples/s\n",
                         run.task, run.seed, *middle * 1e3, times.size(),
                         static_cast<double>(run.batch) / *middle);
    }
    return fmt::format("{}, seed {}: {} {} {:.4g} of {} in {:.1f} s, {:.1f} epochs (baseline {})\n",
                       run.task, run.seed, run.reached ? "reached" : "missed", run.metric,
                       run.quality.value_or(0),
                       run.target ? fmt::format("{:.4g}", *run.target) : "none", run.seconds,
                       run.epochs(), run.baseline ? fmt::format("{:.4g}", *run.baseline) : "none");
  }

  static ordered_json ToJson(const std::vector<Score>& scores) {
    const auto or_null = [](const std::optional<double>& value) {
      return value ? ordered_json(*value) : ordered_json();
    };
    ordered_json tasks = ordered_json::array();
    for (const Score& score : scores) {
      ordered_json runs = ordered_json::array();
      for (const RunRecord& run : score.runs) runs.push_back(suite::ToJson(run));
      tasks.push_back({{"id", score.task},
                       {"reached", score.reached},
                       {"quality", or_null(score.quality)},
                       {"target", or_null(score.target)},
                       {"baseline", or_null(score.baseline)},
                       {"seconds", or_null(score.seconds)},
                       {"variation", or_null(score.variation)},
                       {"runs", runs}});
    }
    return {{"format", "etude-suite"}, {"version", 1}, {"tasks", tasks}};
  }

  std::vector<std::string> names_;
  std::vector<std::string> libraries_;
  bool all_ = false;
  std::string scale_ = "smoke";
  std::string mode_ = "quality";
  std::string precision_ = "fp32";
  std::string optimizer_;
  std::string loss_scale_;
  std::string rate_;
  std::string target_;
  std::string output_;
  int64_t seed_ = 1;
  int64_t seeds_ = 1;
  int64_t ranks_ = 1;
  bool json_ = false;
  RunOptions run_{.device = ""};
};

}  // namespace

std::unique_ptr<Command> MakeSuiteRunCommand() { return std::make_unique<SuiteRunCommand>(); }

}  // namespace etude
