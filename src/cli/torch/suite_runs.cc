#include "src/cli/torch/suite_runs.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <numeric>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/nearest.h"
#include "src/cli/app/measure_noise.h"
#include "src/cli/app/suite_data_folder.h"
#include "src/cli/torch/rank_processes.h"
#include "src/formats/io/atomic_file.h"
#include "src/jobs/output_files.h"
#include "src/report/text/json_output.h"
#include "src/suite/data_parallel.h"
#include "src/suite/kept_run.h"
#include "src/suite/task_maker.h"
#include "src/torch/operator_library.h"

namespace etude {
namespace {

using suite::RunOptions;
using suite::RunRecord;
using suite::TaskFacts;

constexpr int64_t kMostProcesses = 1024;
// Number of cores in use by others that is tolerated.
constexpr double kBusyCores = 0.3;
constexpr const char* kUpdatesRequire = "--sparse-update-every requires --sparse set or rigl";

std::string_view Name(SuiteRunner::Mode mode) {
  return mode == SuiteRunner::Mode::kSteps ? "steps" : "quality";
}

}  // namespace

void TaskChoice::Declare(Options& options) {
  options.Positionals("tasks", &names_, "tasks by name or by AIBench's number", false);
  options.Flag("--all", &all_, "all tasks");
}

Result<std::vector<const TaskFacts*>> TaskChoice::Choose() const {
  if (all_ == !names_.empty()) {
    return MakeError(ErrorCode::kUsage,
                     "expected names of tasks, or --all; `etude suite list` lists the tasks");
  }
  std::vector<const TaskFacts*> tasks;
  std::vector<std::string> known;
  for (const TaskFacts& task : suite::Catalogue()) {
    known.emplace_back(task.id);
    if (all_) tasks.push_back(&task);
  }
  for (const std::string& name : names_) {
    const TaskFacts* task = suite::FindTask(name);
    if (task == nullptr) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("no task '{}'{}", name, MeantOrAll(name, known)));
    }
    tasks.push_back(task);
  }
  return tasks;
}

void RunSettings::Declare(Options& options) {
  options.Choice("--scale", &scale, {"smoke", "paper"},
                 "smoke: a small task of a minute; paper: the published task");
  options.Value("--device", &run.device, "DEVICE",
                "cpu, cuda:N, or the name of another PyTorch device");
  options.Values("--library", &libraries, "FILE",
                 "load a shared library, for example for a device; its code runs");
  options.Value("--ranks", &ranks, "N", "number of data-parallel processes that train one model",
                {.least = 1, .most = kMostProcesses});
  options.Value("--threads", &run.threads, "N", "number of threads in PyTorch's pool per rank",
                {.least = 1, .most = kMostProcesses});
  options.Flag("--deterministic", &run.deterministic,
               "refuse operators with nondeterministic results");
  options.Choice("--precision", &precision_, {"fp32", "bf16", "fp16"},
                 "precision of operators; weights are float32");
  options.Value("--loss-scale", &run.loss_scale, "FACTOR",
                "fixed loss scale (default: dynamic for fp16, none for others)", /*above=*/0);
  options.Value("--batch", &run.batch, "N", "global batch size: samples per step over all ranks",
                {.least = 1, .most = kMostTrainingSteps});
  options.Choice("--optimizer", &optimizer_, {"sgd", "adam", "adamw", "rmsprop"},
                 "optimizer (default: the task's)");
  options.Value("--rate", &run.rate, "RATE", "learning rate (default: the task's)", /*above=*/0);
  options.Value("--most-steps", &run.most_steps, "N",
                "max number of steps; after that the target counts as missed",
                {.least = 1, .most = kMostTrainingSteps});
  options.Value("--evaluate-every", &run.evaluate_every, "N", "number of steps between evaluations",
                {.least = 1, .most = kMostTrainingSteps});
  options.Value("--table-rows", &run.table_rows, "N",
                "max rows of each embedding table of advertising (default: all)", {.least = 1});
  options.Choice("--sparse", &sparse_, {"static", "set", "rigl"},
                 "train with a share of the weights (--density) by masks");
  options.Value("--density", &density_, "D", "--sparse: share of the weights that remain",
                /*above=*/0);
  options.Choice("--sparse-shares", &sparse_shares_, {"uniform", "er", "erk"},
                 "--sparse: densities of layers by their shapes (default: erk)");
  options.Value("--sparse-update-every", &sparse_update_every_, "N",
                "--sparse set or rigl: number of steps between updates of the masks (default: 100)",
                {.least = 1, .most = kMostTrainingSteps});
  options.Choice("--sparse-kernels", &sparse_kernels_, {"dense", "csr"},
                 "--sparse: kernels of linear layers: dense, or by compressed sparse rows on the "
                 "CPU (default: dense)");
  options.Value(
      "--data", &run.data, "FOLDER",
      "folder with the data sets (default: $ETUDE_SUITE_DATA, else ~/.cache/etude/suite)");
}

Status RunSettings::Read() {
  run.scale = scale == "paper" ? suite::Scale::kPaper : suite::Scale::kSmoke;
  run.precision = *suite::PrecisionFromName(precision_);
  run.optimizer = suite::OptimizerKindFromName(optimizer_);
  if (run.data.empty()) run.data = DefaultSuiteData();
  const std::optional<suite::SparseOptions::Method> method = suite::SparseMethodFromName(sparse_);
  if (!method) {
    if (density_) return MakeError(ErrorCode::kUsage, "--density requires --sparse");
    if (!sparse_shares_.empty()) {
      return MakeError(ErrorCode::kUsage, "--sparse-shares requires --sparse");
    }
    if (!sparse_kernels_.empty()) {
      return MakeError(ErrorCode::kUsage, "--sparse-kernels requires --sparse");
    }
    if (sparse_update_every_) return MakeError(ErrorCode::kUsage, kUpdatesRequire);
    return {};
  }
  if (!density_) return MakeError(ErrorCode::kUsage, "--sparse requires --density D");
  if (*density_ > 1) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--density: found {}, expected at most 1", *density_));
  }
  run.sparse = suite::SparseOptions{.method = *method, .density = *density_};
  if (const auto shares = suite::SparseSharesFromName(sparse_shares_)) run.sparse->shares = *shares;
  if (const auto kernels = suite::SparseKernelsFromName(sparse_kernels_)) {
    run.sparse->kernels = *kernels;
  }
  if (sparse_update_every_) {
    if (*method == suite::SparseOptions::Method::kStatic) {
      return MakeError(ErrorCode::kUsage, kUpdatesRequire);
    }
    run.sparse->update_every = *sparse_update_every_;
  }
  return {};
}

std::string RunName(const TaskFacts& task, suite::Scale scale, SuiteRunner::Mode mode,
                    uint64_t seed) {
  return fmt::format("{}.{}.{}.{}", task.id, suite::Name(scale), Name(mode), seed);
}

std::vector<SuiteRunner::Job> JobsOf(const std::vector<const TaskFacts*>& tasks,
                                     const RunOptions& options, SuiteRunner::Mode mode,
                                     int64_t first_seed, int64_t seeds) {
  std::vector<SuiteRunner::Job> jobs;
  for (const TaskFacts* task : tasks) {
    for (int64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
      RunOptions own = options;
      own.seed = static_cast<uint64_t>(seed);
      std::string name = RunName(*task, own.scale, mode, own.seed);
      jobs.push_back({.task = task, .options = std::move(own), .name = std::move(name)});
    }
  }
  return jobs;
}

SuiteRunner::SuiteRunner(const RunSettings& settings, std::string folder, bool temporary,
                         std::unique_ptr<StopSignal> stop)
    : settings_(settings),
      folder_(std::move(folder)),
      temporary_(temporary),
      stop_(std::move(stop)) {}

SuiteRunner::~SuiteRunner() {
  std::error_code error;
  if (temporary_) std::filesystem::remove_all(folder_, error);
}

Result<std::unique_ptr<SuiteRunner>> SuiteRunner::Make(const RunSettings& settings,
                                                       const std::string& folder) {
  ETUDE_ASSIGN_OR_RETURN(auto stop, StopSignal::Make());
  std::string place = folder;
  if (folder.empty()) {
    ETUDE_ASSIGN_OR_RETURN(place, MakeTemporaryFolder("etude-suite"));
  } else {
    ETUDE_RETURN_IF_ERROR(MakeFolder(folder));
  }
  return std::unique_ptr<SuiteRunner>(
      new SuiteRunner(settings, place, folder.empty(), std::move(stop)));
}

Result<std::optional<RunRecord>> SuiteRunner::Kept(const TaskFacts& task, Mode mode,
                                                   const RunOptions& options,
                                                   const std::string& name,
                                                   const RunContext& context) {
  const std::string path = folder_ + "/" + name + ".json";
  std::string& data_set = data_sets_[std::string(task.id)];
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<RunRecord>();
  ETUDE_ASSIGN_OR_RETURN(RunRecord kept, suite::ReadRunRecord(path, context));
  ETUDE_RETURN_IF_ERROR(suite::CheckKept(path, kept,
                                         {.options = options,
                                          .task = task.id,
                                          .mode = Name(mode),
                                          .ranks = settings_.ranks,
                                          .data_set = data_set}));
  // Missing data do not count as different.
  const suite::TaskMaker* maker = suite::FindMaker(task.id);
  const std::string here = maker == nullptr || maker->find_data_set == nullptr
                               ? std::string()
                               : maker->find_data_set(options.scale, options.data);
  if (!here.empty() && !kept.data_set.empty() && here != kept.data_set) {
    return MakeError(ErrorCode::kUsage,
                     suite::OtherDataSetText(task.id, options.data, here, kept.data_set));
  }
  if (data_set.empty()) data_set = kept.data_set;
  return std::optional(std::move(kept));
}

Status SuiteRunner::CheckAll(const std::vector<Job>& jobs, Mode mode, const RunContext& context) {
  std::vector<Error> errors;
  const auto note = [&](const Error& error) {
    // Seeds of one task have the same problems.
    if (std::ranges::find(errors, error.message, &Error::message) == errors.end()) {
      errors.push_back(error);
    }
  };
  const RunContext quiet = context.Unwarned();
  std::vector<const Job*> left;
  std::set<std::string_view> tasks;
  for (const Job& job : jobs) {
    const auto kept = Kept(*job.task, mode, job.options, job.name, quiet);
    if (!kept) note(kept.error());
    if (!kept || *kept) continue;
    std::error_code error;
    // The first remaining run of a task, and those that were begun.
    const std::string checkpoint = folder_ + "/" + job.name + ".safetensors";
    const bool begun = !temporary_ && std::filesystem::exists(checkpoint, error);
    if (!tasks.insert(job.task->id).second && !begun) continue;
    left.push_back(&job);
  }
  if (tasks.size() > 1) {
    for (const Job* job : left) {
      RunOptions options = job->options;
      options.data_set = data_sets_[std::string(job->task->id)];
      if (!temporary_) options.checkpoint = folder_ + "/" + job->name + ".safetensors";
      const auto work = [&](int64_t, suite::DataParallel* ranks, const RunContext& inner) {
        return suite::CheckRun(*job->task, Name(mode), options, ranks, inner);
      };
      const Status checked = RunRanksWith(work, quiet);
      if (checked) continue;
      if (checked.error().code == ErrorCode::kInterrupted) return checked;
      note(checked.error());
    }
  }
  if (errors.empty()) return {};
  std::string message;
  for (const Error& error : errors) {
    message += (message.empty() ? "" : "\n  ") + error.message;
  }
  return MakeError(errors.front().code, std::move(message));
}

void SuiteRunner::TellBusyCores(const RunContext& context) {
  const auto before = CoreUse::Now();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto after = CoreUse::Now();
  const double cores = CoreLimit();
  if (!before || !after || cores <= 0) return;
  const double others = CoresOfOthers(*before, *after);
  const double wanted =
      settings_.run.threads ? static_cast<double>(settings_.ranks * *settings_.run.threads) : cores;
  if (others < kBusyCores || wanted + others <= cores + kBusyCores) return;
  context.Warn(
      fmt::format("other programs use {:.1f} of {:.3g} cores, so runs take longer", others, cores));
}

void SuiteRunner::TellBusyCores(const CoreUse& before, RunRecord& record,
                                const RunContext& context) const {
  const auto after = CoreUse::Now();
  if (!after) return;
  record.others_cores = CoresOfOthers(before, *after);
  const double cores = CoreLimit();
  const auto wanted = static_cast<double>(record.ranks * record.threads);
  if (*record.others_cores < kBusyCores ||
      std::min(wanted, cores) + *record.others_cores <= cores + kBusyCores) {
    return;
  }
  context.Warn(
      fmt::format("{}, seed {}: other programs used {:.1f} of {:.3g} cores during the run, so its "
                  "times are too long",
                  record.task, record.seed, *record.others_cores, cores));
}

Result<RunRecord> SuiteRunner::Run(const TaskFacts& task, Mode mode, const RunOptions& options,
                                   const std::string& name, const RunContext& context) {
  const std::string path = folder_ + "/" + name + ".json";
  const std::string checkpoint = folder_ + "/" + name + ".safetensors";
  std::string& data_set = data_sets_[std::string(task.id)];
  ETUDE_ASSIGN_OR_RETURN(auto kept, Kept(task, mode, options, name, context));
  if (kept) return *std::move(kept);
  RunOptions own = options;
  own.data_set = data_set;
  if (!has_begun_) TellBusyCores(context);
  own.tell_threads = !std::exchange(has_begun_, true);
  if (!temporary_) {
    own.checkpoint = checkpoint;
    if (!noise_) noise_ = MeasureNoise().wall.share();  // the record may be compared
  }
  const auto cores_before = CoreUse::Now();
  const auto work = [&](int64_t rank, suite::DataParallel* ranks,
                        const RunContext& inner) -> Status {
    ETUDE_ASSIGN_OR_RETURN(RunRecord record, mode == Mode::kSteps
                                                 ? suite::RunSteps(task, own, ranks, inner)
                                                 : suite::RunToQuality(task, own, ranks, inner));
    record.noise = noise_;
    return rank == 0 ? ReplaceFile(path, JsonText(suite::ToJson(record), 1)) : Status();
  };
  ETUDE_RETURN_IF_ERROR(RunRanksWith(work, context));
  std::error_code error;
  std::filesystem::remove(checkpoint, error);
  ETUDE_ASSIGN_OR_RETURN(RunRecord record, suite::ReadRunRecord(path, context));
  if (cores_before) {
    TellBusyCores(*cores_before, record, context);
    // The record is already stored, without this figure.
    const Status kept_again = WriteFile(path, JsonText(suite::ToJson(record), 1));
    if (!kept_again) context.Warn(kept_again.error().message);
  }
  data_set = record.data_set;
  return record;
}

Status SuiteRunner::Record(const TaskFacts& task, const RunOptions& options,
                           const std::string& folder, const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(MakeFolder(folder));
  const auto work = [&](int64_t, suite::DataParallel* ranks, const RunContext& inner) {
    return suite::RecordTask(task, options, ranks, folder, inner);
  };
  return RunRanksWith(work, context);
}

Status SuiteRunner::RunRanksWith(
    const std::function<Status(int64_t rank, suite::DataParallel* ranks,
                               const RunContext& context)>& work,
    RunContext context) const {
  context.stop = stop_->flag();
  if (context.stopped()) return MakeError(ErrorCode::kInterrupted, "stopped");
  std::vector<int64_t> all(static_cast<size_t>(settings_.ranks));
  std::iota(all.begin(), all.end(), 0);
  ETUDE_ASSIGN_OR_RETURN(const MeetingPlace place, MeetingPlace::Open());
  const auto ran = RunRanks(all, 0, [&](int64_t rank) -> Result<ExitCode> {
    for (const std::string& library : settings_.libraries) {
      ETUDE_RETURN_IF_ERROR(LoadOperatorLibrary(library));
    }
    if (rank != 0) context.progress = nullptr;
    if (settings_.ranks == 1) {
      // A scheduler may signal all processes. Several ranks wait for each other, so only the first
      // process stops them.
      signal(SIGTERM, StopSignal::Note);
      const Status done = work(rank, nullptr, context);
      signal(SIGTERM, SIG_DFL);
      if (!done) return tl::unexpected<Error>(done.error());
      return ExitCode::kOk;
    }
    RankGroup group(
        {.rank = rank, .size = settings_.ranks, .present = all, .lead = 0, .place = place});
    ETUDE_ASSIGN_OR_RETURN(const auto ranks, suite::DataParallel::Connect(group));
    ETUDE_RETURN_IF_ERROR(work(rank, ranks.get(), context));
    ETUDE_RETURN_IF_ERROR(group.Meet());
    return ExitCode::kOk;
  });
  close(place.listener);
  if (ran) return {};
  Error error = ran.error();
  constexpr std::string_view kOnlyRank = "rank 0: ";
  if (settings_.ranks == 1 && error.message.starts_with(kOnlyRank)) {
    error.message.erase(0, kOnlyRank.size());
  }
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace etude
