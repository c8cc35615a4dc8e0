#include "src/suite/run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include "src/base/machine/core_use.h"
#include "src/base/machine/hardware_counters.h"
#include "src/base/machine/process_usage.h"
#include "src/base/text/format_count.h"
#include "src/suite/checkpoint.h"
#include "src/suite/energy_meter.h"
#include "src/suite/guarded.h"
#include "src/suite/kept_run.h"
#include "src/suite/nn/functional.h"
#include "src/suite/task.h"
#include "src/suite/task_maker.h"
#include "src/suite/task_recording.h"
#include "src/suite/this_machine.h"
#include "src/suite/trainer.h"
#include "src/torch/memory/program_heap.h"
#include "src/torch/replay_device.h"

namespace etude::suite {
namespace {

constexpr double kSecondsBetweenCheckpoints = 30;
constexpr double kSecondsBetweenEnergyReads = 60;
// Facts of a checkpoint: the record so far, and the steps since its last evaluation.
constexpr const char* kRunFact = "run";
constexpr const char* kSinceFact = "since evaluation";

struct StepsSince {
  double loss = 0;  // sum of losses
  int64_t steps = 0;
};

std::string TextOf(const StepsSince& since) {
  return fmt::format("{:a} {}", since.loss, since.steps);
}

Result<StepsSince> ParseStepsSince(const std::string& path, const std::string& text) {
  StepsSince since;
  char* end = nullptr;
  since.loss = std::strtod(text.c_str(), &end);
  const bool has_loss = end != text.c_str() && *end == ' ';
  since.steps = has_loss ? std::strtoll(end, &end, 10) : -1;
  if (since.steps < 0 || *end != '\0') {
    return BadInput(fmt::format("{}: '{}': found '{}', expected a loss and a number of steps", path,
                                kSinceFact, text));
  }
  return since;
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double WallClock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Hyperparameters WithOverrides(Hyperparameters hyperparameters, const RunOptions& options) {
  if (options.batch) hyperparameters.batch = *options.batch;
  for (OptimizerOptions& optimizer : hyperparameters.optimizers) {
    if (options.optimizer) optimizer.kind = *options.optimizer;
    if (options.rate) optimizer.rate = *options.rate;
  }
  if (options.evaluate_every) hyperparameters.evaluate_every = *options.evaluate_every;
  if (options.most_steps) hyperparameters.most_steps = *options.most_steps;
  return hyperparameters;
}

std::string OptimizerText(const Hyperparameters& hyperparameters) {
  std::string text;
  for (const OptimizerOptions& optimizer : hyperparameters.optimizers) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", Name(optimizer.kind), optimizer.rate);
  }
  return text;
}

// A task ready for training, and the beginning of its record.
struct Prepared {
  std::unique_ptr<Task> task;
  std::unique_ptr<Trainer> trainer;
  RunRecord record;
  double begin = 0;  // start of the clock
};

Result<std::unique_ptr<Task>> MakeTask(const TaskFacts& facts, const RunOptions& options,
                                       const RunContext& context) {
  const TaskMaker* maker = FindMaker(facts.id);
  if (maker == nullptr) {
    return MakeError(ErrorCode::kInternal,
                     fmt::format("{}: this build cannot create this task", facts.id));
  }
  return Guarded(facts.id, [&] {
    return maker->make({.scale = options.scale,
                        .seed = options.seed,
                        .device = at::Device(options.device),
                        .data = options.data,
                        .context = context,
                        .table_rows = options.table_rows,
                        .caravan = options.caravan,
                        .shuffled_labels = options.shuffled_labels});
  });
}

// Warns of more threads than cores, which is slowest with several ranks.
void TellThreads(int64_t ranks, const RunContext& context) {
  const double cores = CoreLimit();
  const int threads = at::get_num_threads();
  if (cores <= 0 || static_cast<double>(ranks * threads) <= cores + 0.05) return;
  context.Warn(
      fmt::format("{}{} threads on {:.3g} cores: too many threads slow down the runs; set their "
                  "number with --threads",
                  ranks == 1 ? "" : fmt::format("{} ranks × ", ranks), threads, cores));
}

Result<Prepared> Prepare(const TaskFacts& facts, const RunOptions& options, DataParallel* ranks,
                         const RunContext& context) {
  Prepared run;
  run.begin = Now();
  run.record.started = WallClock();
  // Returning and reallocating pages in each step would take a third of the CPU time.
  KeepFreed();
  if (options.threads) at::set_num_threads(static_cast<int>(*options.threads));
  if (options.tell_threads && (ranks == nullptr || ranks->rank() == 0)) {
    TellThreads(ranks == nullptr ? 1 : ranks->size(), context);
  }
  if (options.deterministic) UseDeterministicOperators();
  ETUDE_RETURN_IF_ERROR(FindDevice(options.device));
  SeedTorch(options.seed);
  ETUDE_ASSIGN_OR_RETURN(run.task, MakeTask(facts, options, context));
  if (!options.data_set.empty() && run.task->data_set() != options.data_set) {
    return MakeError(ErrorCode::kUsage, OtherDataSetText(facts.id, options.data,
                                                         run.task->data_set(), options.data_set));
  }
  const Hyperparameters hyperparameters = WithOverrides(run.task->hyperparameters(), options);
  ETUDE_ASSIGN_OR_RETURN(run.trainer, Trainer::Make(*run.task, {.hyperparameters = hyperparameters,
                                                                .seed = options.seed,
                                                                .precision = options.precision,
                                                                .loss_scale = options.loss_scale,
                                                                .sparse = options.sparse,
                                                                .frozen = options.frozen,
                                                                .ranks = ranks}));
  RunRecord& record = run.record;
  record.task = facts.id;
  record.aibench = facts.aibench;
  record.scale = Name(options.scale);
  record.seed = static_cast<int64_t>(options.seed);
  record.device = options.device;
  record.precision = Name(options.precision);
  record.ranks = ranks == nullptr ? 1 : ranks->size();
  record.threads = at::get_num_threads();
  record.batch = hyperparameters.batch;
  record.samples = run.task->samples();
  record.parameters = run.task->weights().ParameterCount();
  record.optimizer = OptimizerText(hyperparameters);
  record.settings = SettingsOf(options);
  record.data_set = run.task->data_set();
  record.metric = facts.metric.name;
  record.higher_is_better = facts.metric.higher_is_better;
  if (const auto target = facts.TargetOf(options.scale); target && run.task->has_target()) {
    record.target = target->quality;
    record.target_origin = Name(target->origin);
  }
  if (options.target) {
    record.target = options.target;
    record.target_origin = kGivenTarget;
  }
  record.machine = ThisMachine();
  record.torch = TORCH_VERSION;
  return run;
}

Result<StepTime> RunTimed(Trainer& trainer, const std::string& device) {
  const StepStopwatch watch(device);
  ETUDE_RETURN_IF_ERROR(trainer.Step());
  return watch.Read();
}

// Warns once that training has diverged, on the first rank.
class DivergenceWarning {
 public:
  DivergenceWarning(const DataParallel* ranks, const RunContext& context)
      : context_(ranks == nullptr || ranks->rank() == 0 ? &context : nullptr) {}
  void See(double loss, const RunRecord& record, int64_t steps) {
    if (context_ == nullptr || std::isfinite(loss)) return;
    context_->Warn(fmt::format("{}, seed {}: the loss is not a number after {}", record.task,
                               record.seed, FormatCount(static_cast<uint64_t>(steps), "step")));
    context_ = nullptr;
  }

 private:
  const RunContext* context_;  // null: already warned, or silent
};

// Underflow of gradients, averaged over the evaluations of a run.
class UnderflowMean {
 public:
  void Add(const Underflow& count) {
    values_ += count.values;
    lost_ += count.lost;
  }
  std::optional<double> share() const {
    if (values_ == 0) return std::nullopt;
    return static_cast<double>(lost_) / static_cast<double>(values_);
  }

 private:
  int64_t values_ = 0;
  int64_t lost_ = 0;
};

// A run to quality, from its beginning or from a checkpoint.
class QualityRun {
 public:
  QualityRun(Prepared prepared, const RunOptions& options, DataParallel* ranks,
             const RunContext& context)
      : task_(std::move(prepared.task)),
        trainer_(std::move(prepared.trainer)),
        record_(std::move(prepared.record)),
        begin_(prepared.begin),
        options_(options),
        ranks_(ranks),
        context_(context),
        energy_(options.device != "cpu"),
        divergence_(ranks, context) {}

  // Does everything before training.
  Status Check() {
    record_.mode = "quality";
    return TakeUp();
  }

  Result<RunRecord> Run() {
    record_.mode = "quality";
    record_.evaluate_every = trainer_->hyperparameters().evaluate_every;
    ETUDE_ASSIGN_OR_RETURN(record_.baseline, trainer_->Baseline());
    record_.setup_seconds = Now() - begin_;
    ETUDE_RETURN_IF_ERROR(TakeUp());
    PeakResident peak;
    peak.Begin();
    const Hyperparameters& hyperparameters = trainer_->hyperparameters();
    bool is_first = true;
    while (!record_.reached || options_.to_the_end) {
      if (!IsDue()) {
        if (trainer_->steps_done() >= hyperparameters.most_steps) break;
        ETUDE_ASSIGN_OR_RETURN(const double of_step,
                               is_first ? trainer_->StepWithWork(context_) : trainer_->Step());
        is_first = false;
        since_.loss += of_step;
        ++since_.steps;
        if (Now() - energy_read_ > kSecondsBetweenEnergyReads) ReadEnergy();
        // Several ranks stop together, at an evaluation.
        if (ranks_ == nullptr && context_.stopped()) return Interrupted();
        continue;
      }
      if (const Status evaluated = Evaluate(); !evaluated) {
        if (evaluated.error().code == ErrorCode::kInterrupted) return Interrupted();
        return tl::unexpected<Error>(evaluated.error());
      }
      since_ = {};
      if (ranks_ != nullptr && ranks_->Agree(context_.stopped() ? 1 : 0) != 0) return Interrupted();
      ETUDE_RETURN_IF_ERROR(SaveSometimes());
    }
    ETUDE_ASSIGN_OR_RETURN(record_.figures, trainer_->Figures());
    record_.complete = true;
    Finish();
    ETUDE_RETURN_IF_ERROR(trainer_->CompareRanks());
    if (const auto bytes = peak.bytes()) record_.peak_bytes = bytes->count;
    return record_;
  }

 private:
  double Elapsed() const { return before_ + Now() - begin_; }
  bool writes() const {
    return !options_.checkpoint.empty() && (ranks_ == nullptr || ranks_->rank() == 0);
  }

  // Returns whether an evaluation is due, including one before which an earlier run stopped.
  bool IsDue() const {
    const int64_t done = trainer_->steps_done();
    const Hyperparameters& hyperparameters = trainer_->hyperparameters();
    return since_.steps > 0 &&
           (done % hyperparameters.evaluate_every == 0 || done == hyperparameters.most_steps);
  }

  void ReadEnergy() {
    energy_.Read();
    energy_read_ = Now();
  }

  Status Evaluate() {
    const double loss = since_.loss / static_cast<double>(since_.steps);
    divergence_.See(loss, record_, trainer_->steps_done());
    const double begin = Now();
    ETUDE_ASSIGN_OR_RETURN(const double quality, trainer_->Evaluate());
    const double took = Now() - begin;
    record_.evaluation_seconds += took;
    record_.quality = quality;
    record_.curve.push_back({.step = trainer_->steps_done(),
                             .seconds = Elapsed(),
                             .evaluation_seconds = took,
                             .quality = quality,
                             .loss = loss});
    const Metric metric{record_.metric, record_.higher_is_better};
    record_.reached = record_.target && Reaches(metric, quality, *record_.target);
    if (options_.precision != Precision::kFp32) {
      ETUDE_ASSIGN_OR_RETURN(const Underflow count, trainer_->CountLost());
      underflow_.Add(count);
    }
    ReadEnergy();
    context_.Progress(
        fmt::format("{}, seed {}: {} {:.4g}{}", record_.task, record_.seed, record_.metric, quality,
                    record_.target ? fmt::format(" of {:.4g}", *record_.target) : ""),
        static_cast<uint64_t>(trainer_->steps_done()),
        static_cast<uint64_t>(trainer_->hyperparameters().most_steps));
    return {};
  }

  void Finish() {
    record_.steps = trainer_->steps_done();
    record_.seconds = Elapsed();
    ReadEnergy();
    record_.energy_j = energy_.joules();
    record_.why_no_energy = energy_.why_none();
    if (resumed_ && record_.energy_j) {
      if (energy_before_) {
        *record_.energy_j += *energy_before_;
      } else {
        record_.energy_j.reset();
        record_.why_no_energy = "unknown for the part before the run was resumed";
      }
    }
    record_.skipped_steps = trainer_->loss_scale().skipped();
    const LossScale& scale = trainer_->loss_scale();
    if (scale.used()) record_.loss_scale = scale.factor();
    // Counts of earlier parts are not saved.
    record_.underflow = resumed_ ? std::nullopt : underflow_.share();
  }

  // Resumes from the checkpoint, if there is one.
  Status TakeUp() {
    std::error_code error;
    if (options_.checkpoint.empty() || !std::filesystem::exists(options_.checkpoint, error)) {
      return {};
    }
    ETUDE_ASSIGN_OR_RETURN(const auto facts, ReadCheckpoint(options_.checkpoint, {}, context_));
    const auto found = facts.find(kRunFact);
    if (found == facts.end()) {
      return BadInput(options_.checkpoint + ": missing record of the run");
    }
    ETUDE_ASSIGN_OR_RETURN(const RunRecord before,
                           ParseRunRecord(options_.checkpoint, found->second, context_));
    ETUDE_RETURN_IF_ERROR(CheckKept(options_.checkpoint, before,
                                    {.options = options_,
                                     .task = record_.task,
                                     .mode = record_.mode,
                                     .ranks = record_.ranks,
                                     .data_set = record_.data_set}));
    ETUDE_RETURN_IF_ERROR(trainer_->Load(options_.checkpoint, context_));
    record_.curve = before.curve;
    record_.quality = before.quality;
    record_.evaluation_seconds = before.evaluation_seconds;
    record_.setup_seconds += before.setup_seconds;
    record_.started = before.started;
    record_.reached = before.reached;
    if (const auto kept = facts.find(kSinceFact); kept != facts.end()) {
      ETUDE_ASSIGN_OR_RETURN(since_, ParseStepsSince(options_.checkpoint, kept->second));
    }
    before_ = before.seconds;
    energy_before_ = before.energy_j;
    resumed_ = true;
    return {};
  }

  Status Save() {
    last_saved_ = Now();
    if (!writes()) return {};
    Finish();
    return trainer_->Save(options_.checkpoint,
                          {{kRunFact, ToJson(record_).dump()}, {kSinceFact, TextOf(since_)}});
  }
  Status SaveSometimes() {
    if (Now() - last_saved_ < kSecondsBetweenCheckpoints) return {};
    return Save();
  }

  tl::unexpected<Error> Interrupted() {
    if (const Status saved = Save(); !saved) return tl::unexpected<Error>(saved.error());
    return MakeError(
        ErrorCode::kInterrupted,
        fmt::format("{}, seed {}: stopped after {}{}", record_.task, record_.seed,
                    FormatCount(static_cast<uint64_t>(trainer_->steps_done()), "step"),
                    options_.checkpoint.empty() ? "" : "; repeat the command to continue"));
  }

  std::unique_ptr<Task> task_;
  std::unique_ptr<Trainer> trainer_;
  RunRecord record_;
  double begin_;
  StepsSince since_;
  double energy_read_ = 0;  // Now()
  // Before the run was resumed.
  bool resumed_ = false;
  double before_ = 0;  // seconds
  std::optional<double> energy_before_;
  double last_saved_ = Now();
  const RunOptions& options_;
  DataParallel* ranks_;
  const RunContext& context_;
  EnergyMeter energy_;
  UnderflowMean underflow_;
  DivergenceWarning divergence_;
};

}  // namespace

Status CheckRun(const TaskFacts& facts, std::string_view mode, const RunOptions& options,
                DataParallel* ranks, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Prepared run, Prepare(facts, options, ranks, context));
  if (mode != "quality") return {};
  return QualityRun(std::move(run), options, ranks, context).Check();
}

Result<RunRecord> RunToQuality(const TaskFacts& facts, const RunOptions& options,
                               DataParallel* ranks, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Prepared run, Prepare(facts, options, ranks, context));
  return QualityRun(std::move(run), options, ranks, context).Run();
}

namespace {

// Returns the events between two readings of HardwareEvents, a step; nullopt if none was counted.
std::optional<StepCounters> CountersOf(const CounterSet::Reading& before,
                                       const CounterSet::Reading& after, int64_t steps) {
  CounterSet::Counts counts = CounterSet::Between(before, after);
  if (std::ranges::none_of(counts, [](const auto& count) { return count.has_value(); })) {
    return std::nullopt;
  }
  for (std::optional<double>& count : counts) {
    if (count) *count /= static_cast<double>(steps);
  }
  return StepCounters{.instructions = counts[0],
                      .cycles = counts[1],
                      .cache_misses = counts[2],
                      .branch_misses = counts[3]};
}

}  // namespace

Result<RunRecord> RunSteps(const TaskFacts& facts, const RunOptions& options, DataParallel* ranks,
                           const RunContext& context) {
  const CounterSet counters = CounterSet::OfThisThread();  // before PyTorch starts its threads
  ETUDE_ASSIGN_OR_RETURN(Prepared run, Prepare(facts, options, ranks, context));
  RunRecord& record = run.record;
  record.mode = "steps";
  record.setup_seconds = Now() - run.begin;
  EnergyMeter energy(options.device != "cpu");
  PeakResident peak;
  peak.Begin();
  DivergenceWarning divergence(ranks, context);
  CounterSet::Reading before;
  for (int64_t step = 0; step < options.warmup + options.timed_steps; ++step) {
    if (context.stopped()) return MakeError(ErrorCode::kInterrupted, "stopped");
    if (step == options.warmup) before = counters.Read();
    Synchronize(options.device);
    const double begin = Now();
    ETUDE_ASSIGN_OR_RETURN(const double loss, run.trainer->Step());
    Synchronize(options.device);
    if (step >= options.warmup) record.step_seconds.push_back(Now() - begin);
    divergence.See(loss, record, run.trainer->steps_done());
    energy.Read();
    context.Progress(fmt::format("{}, seed {}: steps", record.task, record.seed),
                     static_cast<uint64_t>(step + 1),
                     static_cast<uint64_t>(options.warmup + options.timed_steps));
  }
  record.counters = CountersOf(before, counters.Read(), options.timed_steps);
  record.why_no_counters = counters.why_none();
  record.steps = run.trainer->steps_done();
  record.seconds = Now() - run.begin;
  record.energy_j = energy.joules();
  record.why_no_energy = energy.why_none();
  record.skipped_steps = run.trainer->loss_scale().skipped();
  if (const auto bytes = peak.bytes()) record.peak_bytes = bytes->count;
  ETUDE_RETURN_IF_ERROR(run.trainer->CompareRanks());
  record.complete = true;
  return record;
}

Status RunStepsOnRequest(const TaskFacts& facts, const RunOptions& options, DataParallel* ranks,
                         const std::function<Status(const RunRecord&, const TimedStep&)>& use,
                         const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Prepared run, Prepare(facts, options, ranks, context));
  return use(run.record, [&] { return RunTimed(*run.trainer, options.device); });
}

Status RecordTask(const TaskFacts& facts, const RunOptions& options, DataParallel* ranks,
                  const std::string& folder, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Prepared run, Prepare(facts, options, ranks, context));
  TaskRecording recording(folder, ranks == nullptr ? 0 : ranks->rank());
  const TimedStep step = [&] { return RunTimed(*run.trainer, options.device); };
  for (int64_t i = 0; i < options.warmup + options.timed_steps; ++i) {
    if (context.stopped()) return MakeError(ErrorCode::kInterrupted, "stopped");
    ETUDE_ASSIGN_OR_RETURN(StepTime time, step());
    if (i >= options.warmup) recording.AddTimed(i, std::move(time));
  }
  ETUDE_RETURN_IF_ERROR(recording.Record(run.trainer->steps_done(), step, context));
  const std::string entry = recording.Entry(run.record);
  if (ranks == nullptr) return recording.WriteJob(run.record, {entry});
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> entries, ranks->Gather(entry));
  return ranks->rank() == 0 ? recording.WriteJob(run.record, entries) : Status();
}

}  // namespace etude::suite
