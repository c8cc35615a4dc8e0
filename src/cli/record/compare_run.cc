#include "src/cli/record/compare_run.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <random>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/nearest.h"
#include "src/base/text/printable.h"
#include "src/base/text/quantity.h"
#include "src/cli/app/measure_noise.h"
#include "src/cli/record/compare_certificates.h"
#include "src/cli/record/own_mark.h"
#include "src/cli/record/paced_program.h"
#include "src/cli/record/paced_replay.h"
#include "src/cli/record/process_tree.h"
#include "src/cli/tool/interpreter.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/jobs/output_files.h"
#include "src/report/certificate/run_comparison_json.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

namespace fs = std::filesystem;

// Unmeasured pairs at the start: while one side was set up, the other was idle.
constexpr int64_t kWarmPairs = 1;
// Default time of a turn before the measured step.
constexpr double kLeadNs = 50e6;
constexpr int64_t kLeadMost = 4;  // steps
// Maximum of consecutive steps of other signatures.
constexpr int64_t kOthersMost = 10'000;

// Returns whether a GPU was active in the timed steps.
bool UsesGpu(const JobRank& job) {
  return std::ranges::any_of(job.timed_steps,
                             [](const StepTime& step) { return step.host.has_value(); });
}

// Host memory is not informative for a step with tensors on a GPU.
StepBars UsualBars(const JobRank& job) {
  StepBars bars = DefaultBars();
  if (UsesGpu(job)) bars[static_cast<size_t>(StepMetric::kPeakMemory)].reset();
  return bars;
}

// Returns the bars, with those named in `texts` replaced.
Result<StepBars> ParseBars(StepBars bars, const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  for (const StepMetricInfo& info : StepMetrics()) names.emplace_back(info.name);
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--bar: unknown metric '{}'{}", name, MeantOrAll(name, names)));
    }
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    auto& bar = bars[static_cast<size_t>(found - names.begin())];
    if (value == "none") {
      bar.reset();
    } else {
      ETUDE_ASSIGN_OR_RETURN(bar, ParseShare("--bar " + name, value));
    }
  }
  return bars;
}

Result<const CaptureRank*> FirstOrNamed(const CaptureFolder& folder,
                                        std::optional<int64_t> wanted) {
  if (!wanted) return &folder.ranks.front();
  const auto found = std::ranges::find(folder.ranks, *wanted, &CaptureRank::number);
  if (found != folder.ranks.end()) return &*found;
  return MakeError(ErrorCode::kUsage, fmt::format("{}: no rank {}", folder.path, *wanted));
}

// A capture and the command to run.
struct Subject {
  CaptureFolder folder;
  const CaptureRank* rank = nullptr;
  std::vector<std::string> command;
  int64_t world_size = 1;
  const JobRank* job = nullptr;
};

// Checks that a folder's command was run here by its user before, or is explicitly allowed.
Status CheckOwn(const CompareRunOptions& options, const JobFile& job) {
  if (!options.command.empty() || options.trust) return {};
  const std::string reason = WhyNotOwn(job);
  if (reason.empty()) return {};
  return BadInput(
      fmt::format("{}: did not run the command in job.json because you did not record it on this "
                  "machine ({}): {}\nto run it, add --trust; to run another one, add -- COMMAND",
                  options.path, reason, Printable(ShellLine(job.command))));
}

// Checks that the program in job.json exists at its relative path, as far as a path shows.
Status CheckProgram(const std::string& capture, const std::vector<std::string>& command) {
  const auto program =
      std::ranges::find_if(command, [](std::string_view word) { return word.ends_with(".py"); });
  std::error_code error;
  if (program == command.end() || std::filesystem::exists(*program, error)) return {};
  return BadInput(
      fmt::format("{}: job.json names the program '{}', which is missing in this folder: run etude "
                  "in the folder where it was recorded, or give the program after --",
                  capture, *program));
}

Result<Subject> FindSubject(const CompareRunOptions& options, const RunContext& context) {
  if (!IsFolder(options.path)) return NoFolder(options.path);
  Subject subject;
  ETUDE_ASSIGN_OR_RETURN(subject.folder, ListCaptureFolder(options.path, context));
  ETUDE_ASSIGN_OR_RETURN(subject.rank, FirstOrNamed(subject.folder, options.rank));
  subject.job = subject.folder.job_rank(*subject.rank);
  if (subject.job == nullptr) {
    return BadInput(fmt::format("{}: job.json lacks rank {}, which --run requires", options.path,
                                subject.rank->number()));
  }
  const auto ranks = static_cast<int64_t>(subject.folder.ranks.size());
  subject.world_size = std::max(subject.folder.job->world_size.value_or(ranks), int64_t{1});
  for (int64_t rank = 0; rank < subject.world_size && subject.world_size > 1; ++rank) {
    if (std::ranges::count(subject.folder.ranks, rank, &CaptureRank::number) != 0) continue;
    return BadInput(
        fmt::format("{}: missing trace of rank {}; --run replays all {} ranks of the job",
                    options.path, rank, subject.world_size));
  }
  subject.command = options.command.empty() ? subject.folder.job->command : options.command;
  if (subject.command.empty()) {
    return BadInput(options.path +
                    ": job.json contains no command; give the program after --: etude compare DIR "
                    "--run -- python train.py");
  }
  return subject;
}

// Describes the signature of the recorded step.
std::string RecordedSignature(const Subject& subject) {
  std::string description;
  for (const StepSignature& signature : subject.job->signatures) {
    if (signature.id == subject.job->recorded_signature) description = signature.description;
  }
  return description;
}

// Both sides, after set-up.
struct Sides {
  PacedProgram& original;
  PacedReplay& replay;
};

class PairRun {
 public:
  // `expected`: description of the recorded signature.
  PairRun(Sides sides, size_t start, std::string expected, const CompareRunOptions& options,
          RunComparison& run)
      : sides_(sides),
        start_(start),
        expected_(std::move(expected)),
        options_(options),
        run_(run) {}

  // Runs this start's pairs, or fewer if the program ends. kBadInput if it had no step of the
  // recorded signature, so that it is another program.
  Status Run(const RunContext& context) {
    ETUDE_RETURN_IF_ERROR(RunPairs(context));
    if (counted_ || !run_.pairs.empty() || other_.empty()) return {};
    return BadInput(
        fmt::format("{}: none of {} steps of the program has the recorded signature: expected "
                    "'{}', found '{}'; check that it is the recorded program",
                    options_.path, run_.steps_of_other, expected_, other_));
  }

 private:
  Status RunPairs(const RunContext& context) {
    std::mt19937_64 random(static_cast<uint64_t>(options_.seed) + start_);
    for (int64_t i = -kWarmPairs; i < Due(); ++i) {
      StepPair pair{.start = start_, .original_first = (random() >> 63) == 0};
      ETUDE_ASSIGN_OR_RETURN(const bool whole, RunPair(pair));
      if (!whole) return {};
      if (i >= 0) run_.pairs.push_back(std::move(pair));
      context.Progress("pairs of steps", static_cast<uint64_t>(run_.pairs.size()),
                       static_cast<uint64_t>(options_.pairs));
    }
    return {};
  }

  // Returns the number of pairs of this start: an equal share of the remaining ones.
  int64_t Due() {
    if (!due_) {
      const int64_t left = options_.pairs - static_cast<int64_t>(run_.pairs.size());
      const int64_t starts = options_.starts - static_cast<int64_t>(start_);
      due_ = (left + starts - 1) / starts;
    }
    return *due_;
  }

  // Returns false if the program has ended, or has no steps of the recorded signature.
  Result<bool> RunPair(StepPair& pair) {
    for (const bool original : {pair.original_first, !pair.original_first}) {
      ETUDE_ASSIGN_OR_RETURN(const auto step, RunTurn(original));
      if (!step) return false;
      (original ? pair.original : pair.replay) = step->figures;
    }
    AddRates(pair.original);
    const ReplayFacts& replay = sides_.replay.facts();
    if (replay.operators == replay.operators_replayed) AddRates(pair.replay);
    return true;
  }

  // Returns the measured step of a side's turn: the first one of the recorded signature after the
  // lead steps. These remove the effect of the other side's data in the processor's caches, which
  // no running program has. nullopt as for RunPair.
  Result<std::optional<PacedStep>> RunTurn(bool original) {
    ETUDE_ASSIGN_OR_RETURN(auto step, RunStep(original));
    for (int64_t i = step ? Lead(*step) : 0; step && (i > 0 || !step->counts); --i) {
      ETUDE_ASSIGN_OR_RETURN(step, RunStep(original));
    }
    return step;
  }

  // Returns the number of steps of a turn before the measured one.
  int64_t Lead(const PacedStep& first) const {
    if (options_.lead) return *options_.lead;
    const double step_ns = std::max(*first.figures[StepMetric::kWallTime], 1.0);
    return std::min(static_cast<int64_t>(kLeadNs / step_ns), kLeadMost);
  }

  // Returns nullopt as for RunPair.
  Result<std::optional<PacedStep>> RunStep(bool original) {
    if (!original) return sides_.replay.Step();
    ETUDE_ASSIGN_OR_RETURN(const auto step, sides_.original.Step());
    if (!step) {
      ETUDE_ASSIGN_OR_RETURN(const std::string how, sides_.original.HowItFailed());
      EndEarly("the program ended", how);
      return step;
    }
    if (!step->other_signature.empty()) other_ = step->other_signature;
    if (step->counts) {
      others_ = 0;
      counted_ = true;
    } else if (++run_.steps_of_other; ++others_ == kOthersMost) {
      EndEarly(fmt::format("none of {} steps in a row had the recorded signature", others_), "");
      return std::nullopt;
    }
    return step;
  }

  // Adds rates of the step; the work is the same on both sides.
  void AddRates(StepFigures& figures) const {
    const auto per_ns = [&](const std::optional<double>& work) -> std::optional<double> {
      const auto& wall = figures[StepMetric::kWallTime];
      if (!work || !wall || *wall <= 0) return std::nullopt;
      return *work / *wall;
    };
    figures[StepMetric::kFlopRate] = per_ns(sides_.replay.flop());
    figures[StepMetric::kByteRate] = per_ns(sides_.replay.bytes());
  }

  void EndEarly(const std::string& what, const std::string& how) {
    run_.ended = fmt::format("{} after {} of {} pairs{}", what, run_.pairs.size(), options_.pairs,
                             how.empty() ? "" : " (" + how + ")");
    if (run_.pairs.size() < kLeastPairs) {
      run_.ended += fmt::format(", and a verdict requires at least {}", kLeastPairs);
      if (options_.lead != 0) run_.ended += "; --lead 0 reduces the steps per pair";
    }
  }

  Sides sides_;
  size_t start_;
  std::string expected_;
  std::optional<int64_t> due_;
  int64_t others_ = 0;    // consecutive steps of other signatures
  std::string other_;     // the last of them
  bool counted_ = false;  // there was a step of the recorded signature
  const CompareRunOptions& options_;
  RunComparison& run_;
};

// Returns the reasons for missing metrics.
std::array<std::string, kStepMetricCount> Reasons(const StepWatch& original,
                                                  const StepWatch& replay, const GpuSensors& gpus) {
  using enum StepMetric;
  std::array<std::string, kStepMetricCount> reasons;
  reasons.fill("the system does not report it");
  const auto set = [&](std::initializer_list<StepMetric> metrics, const std::string& reason) {
    for (const StepMetric metric : metrics) reasons[static_cast<size_t>(metric)] = reason;
  };
  set({kPeakResident, kPeakMemory}, "the system does not report the peak of a step");
  if (!original.has_level() || !replay.has_level()) {
    set({kPeakMemory, kAverageMemory},
        "memory before the first step is unknown because the program called no module");
  }
  std::string counters = original.counters().why_none();
  if (counters.empty()) counters = replay.counters().why_none();
  if (counters.empty()) counters = "the processor or virtual machine has no such counter";
  set({kInstructions, kCycles, kCacheMisses, kBranchMisses}, counters);
  set({kFlopRate, kByteRate}, "some operators are not replayed");
  const std::string gpu = gpus.count() > 0 ? "the GPU does not report it" : gpus.why_none();
  set({kGpuEnergy, kGpuPower, kGpuUtilisation, kGpuMemoryUtilisation, kGpuMemory}, gpu);
  if (gpus.count() > 0) {
    set({kGpuEnergy}, "the GPU reports energy only for steps of at least 0.5 s");
  }
  return reasons;
}

void WarnOfNoise(RunComparison& run, const StepBars& bars, const RunContext& context) {
  const auto check = [&](std::string_view clock, const Spread& spread, StepMetric metric) {
    const auto& bar = bars[static_cast<size_t>(metric)];
    if (!bar || spread.share() <= *bar) return;
    run.notes.push_back(fmt::format(
        "the machine is noisy: the {} time of equal work spreads by {}, more than the bar of {}",
        clock, FormatShare(spread.share()), FormatShare(*bar)));
    context.Warn(run.notes.back());
  };
  check("CPU", run.noise.cpu, StepMetric::kCpuTime);
  check("wall", run.noise.wall, StepMetric::kWallTime);
}

bool PassGaps(const Subject& subject, const CompareRunOptions& options) {
  return options.gaps == "recorded" &&
         (!subject.rank->native.empty() || !subject.rank->device.empty());
}

void NoteGaps(const Subject& subject, const CompareRunOptions& options, RunComparison& run) {
  const std::string_view side = options.benchmark.empty() ? "replay" : "benchmark";
  if (PassGaps(subject, options)) {
    run.notes.push_back(fmt::format("the {} includes the recorded gaps between operators", side));
  } else if (options.gaps == "none") {
    run.notes.push_back(
        fmt::format("the {} runs without the program's gaps between operators", side));
  } else {
    run.notes.emplace_back(
        "the replay runs without gaps between operators because the capture has no times");
  }
}

void NoteThreads(const Subject& subject, RunComparison& run) {
  const std::optional<int64_t>& recorded = subject.job->threads;
  if (!recorded || !run.threads || *recorded == *run.threads) return;
  run.notes.push_back(
      fmt::format("PyTorch's pool now has {} threads in original and replay; it had {} when the "
                  "step was recorded",
                  *run.threads, *recorded));
}

// Adds facts that are known after all pairs.
Status FindKernels(PacedReplay& replay, RunComparison& run) {
  const Status found = replay.FindKernels();
  if (!found && found.error().code != ErrorCode::kUnavailable) return found;
  if (!found) run.notes.push_back("share of same kernels is unknown: " + found.error().message);
  return {};
}

// Returns "2026-11-22T12:00:00Z".
std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  std::array<char, 32> text{};
  gmtime_r(&now, &utc);
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

// Returns the command that repeats the certificate: the given options, except defaults.
std::string AgainLine(const std::string& folder, const CompareRunOptions& options) {
  const CompareRunOptions usual;
  std::vector<std::string> words = {"etude", "compare", folder, "--run"};
  const auto add = [&](const char* name, const auto& value, const auto& otherwise) {
    if (value != otherwise) words.insert(words.end(), {name, fmt::format("{}", value)});
  };
  add("--pairs", options.pairs, usual.pairs);
  add("--starts", options.starts, usual.starts);
  add("--until", options.until, usual.until);
  add("--benchmark", options.benchmark, usual.benchmark);
  add("--python", options.python, usual.python);
  add("--device", options.device, usual.device);
  if (options.rank) add("--rank", *options.rank, -1);
  add("--warmup", options.warmup, usual.warmup);
  if (options.lead) add("--lead", *options.lead, -1);
  for (const std::string& bar : options.bars) words.insert(words.end(), {"--bar", bar});
  add("--timeout", options.timeout_s, usual.timeout_s);
  add("--seed", options.seed, usual.seed);
  add("--gaps", options.gaps, usual.gaps);
  if (options.pin) words.emplace_back("--pin");
  if (options.experimental) words.emplace_back("--experimental");
  for (const std::string& library : options.libraries) {
    words.insert(words.end(), {"--library", library});
  }
  if (options.finish) words.emplace_back("--finish");
  for (const std::string& file : options.certificates) {
    words.insert(words.end(), {"--certificate", file});
  }
  if (options.keep_paths) words.emplace_back("--keep-paths");
  if (!options.command.empty()) {
    words.emplace_back("--");
    words.insert(words.end(), options.command.begin(), options.command.end());
  }
  return ShellLine(words);
}

// Checks that the benchmark can be started. Only its first rank can be timed.
Status CheckBenchmark(const Subject& subject, const CompareRunOptions& options) {
  if (options.benchmark.empty()) {
    if (options.python.empty()) return {};
    return MakeError(ErrorCode::kUsage, "compare: --python requires --benchmark");
  }
  std::error_code error;
  if (!fs::is_regular_file(options.benchmark, error)) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--benchmark: found '{}', expected FOLDER/benchmark.py or "
                                 "FOLDER/build/benchmark, written by `etude benchmark`",
                                 options.benchmark));
  }
  if (subject.world_size > 1 && subject.rank->number() != 0) {
    return MakeError(ErrorCode::kUsage,
                     "--benchmark of several ranks always times rank 0; remove --rank");
  }
  if (options.pin || options.experimental) {
    return MakeError(ErrorCode::kUsage,
                     "--benchmark cannot be combined with --pin or --experimental");
  }
  return {};
}

// Returns "bench/benchmark.py" or "bench/build/benchmark" for a portable folder: parents of the
// benchmark's folder are removed.
std::string NameOfBenchmark(const std::string& path) {
  if (path.empty()) return "";
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  fs::path name = whole.filename();
  fs::path above = whole.parent_path();
  if (name.extension() != ".py") {
    name = above.filename() / name;
    above = above.parent_path();
  }
  return (above.filename() / name).string();
}

// Checks before any measurement that the certificates can be written.
Status TryCertificates(const std::vector<std::string>& paths, const CaptureFolder& folder) {
  for (const std::string& path : paths) {
    for (const CaptureRank& rank : folder.ranks) {
      for (const std::string& file : rank.files()) {
        ETUDE_RETURN_IF_ERROR(CheckOutput(path, {file}));
      }
    }
    if (path == "-") {
      return MakeError(
          ErrorCode::kUsage,
          "compare: --certificate: found '-', expected a file; --json prints the result");
    }
    const auto file = AtomicFile::Create(path);
    if (!file) return tl::unexpected<Error>(file.error());
  }
  return {};
}

Result<Certificate> CertificateOf(const Subject& subject, const CompareRunOptions& options,
                                  const RunComparison& run) {
  ETUDE_ASSIGN_OR_RETURN(const fs::path folder, AbsolutePath(options.path));
  Certificate certificate{
      .benchmark = (folder.has_filename() ? folder : folder.parent_path()).filename().string(),
      .recording = subject.folder.job->id,
      .step = "",
      .again = AgainLine(options.path, options),
      .run = run};
  certificate.step = RecordedSignature(subject);
  for (const StepSignature& signature : subject.job->signatures) {
    certificate.steps_seen += signature.seen;
    if (signature.id != subject.job->recorded_signature) continue;
    certificate.steps_alike += signature.seen;
  }
  return options.keep_paths ? certificate : WithoutFolders(std::move(certificate));
}

// Returns a Python that has torch: the given one, or the program's.
std::string PythonFor(const CompareRunOptions& options, const std::vector<std::string>& command) {
  return options.python.empty() ? PythonOf(command.front()).value_or("python3") : options.python;
}

// Starts both sides and runs this start's pairs. Ends all processes in any case. Returns the
// reasons for missing metrics.
Result<std::array<std::string, kStepMetricCount>> MeasureStart(const Subject& subject, size_t start,
                                                               const CompareRunOptions& options,
                                                               const GpuSensors& gpus,
                                                               const RunContext& context,
                                                               RunComparison& run) {
  const std::chrono::seconds timeout(options.timeout_s);
  ETUDE_ASSIGN_OR_RETURN(const auto tree, ProcessTree::Open());
  ETUDE_ASSIGN_OR_RETURN(const auto original,
                         PacedProgram::Start(*tree, {.command = subject.command,
                                                     .capture = options.path,
                                                     .step = RecordedSignature(subject),
                                                     .rank = run.rank,
                                                     .world_size = run.world_size,
                                                     .warmup = options.warmup,
                                                     .timeout = timeout,
                                                     .gpus = gpus}));
  run.threads = original->threads();
  run.steps_passed = original->warmup_steps();
  run.machine = original->machine();
  run.versions = original->versions();
  run.environment = original->environment();
  if (start == 0) {
    for (const std::string& note : subject.job->notes) run.notes.push_back("as recorded: " + note);
    NoteThreads(subject, run);
    NoteGaps(subject, options, run);
  }
  ETUDE_ASSIGN_OR_RETURN(PacedReplay replay,
                         PacedReplay::Start(*tree, {.capture = options.path,
                                                    .benchmark = options.benchmark,
                                                    .python = PythonFor(options, subject.command),
                                                    .device = options.device,
                                                    .rank = run.rank,
                                                    .world_size = run.world_size,
                                                    .threads = run.threads,
                                                    .pin = options.pin,
                                                    .experimental = options.experimental,
                                                    .libraries = options.libraries,
                                                    .gaps = PassGaps(subject, options),
                                                    .quiet = !context.warn,
                                                    .timeout = timeout,
                                                    .gpus = gpus}));
  run.ended.clear();
  ETUDE_RETURN_IF_ERROR(
      PairRun({*original, replay}, start, RecordedSignature(subject), options, run).Run(context));
  auto reasons = Reasons(original->watch(), replay.watch(), gpus);
  if (!options.benchmark.empty()) {
    for (const StepMetric metric : {StepMetric::kFlopRate, StepMetric::kByteRate}) {
      reasons[static_cast<size_t>(metric)] = "a benchmark does not count its operations";
    }
  }
  const bool is_last = static_cast<int64_t>(start) + 1 == options.starts;
  if (is_last && options.benchmark.empty()) ETUDE_RETURN_IF_ERROR(FindKernels(replay, run));
  run.replay = replay.facts();
  ETUDE_RETURN_IF_ERROR(replay.End());
  ETUDE_RETURN_IF_ERROR(original->End(options.finish && is_last));
  return reasons;
}

// Returns the pairs of a start of both sides.
int64_t PairsOfStart(const CompareRunOptions& options) {
  return (options.pairs + options.starts - 1) / options.starts;
}

}  // namespace

bool WantsMorePairs(const CompareRunOptions& options, const RunComparison& run) {
  const bool undetermined = std::ranges::any_of(run.metrics, [](const MetricComparison& metric) {
    return metric.verdict == BarVerdict::kUndetermined;
  });
  return !options.until.empty() && run.ended.empty() && undetermined &&
         run.pairs_wanted + PairsOfStart(options) <= kMorePairs * options.pairs;
}

Result<double> ParseShare(const std::string& option, std::string_view text) {
  const bool percent = text.ends_with('%');
  const std::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  const auto value = ParseDecimal(digits);
  if (!value || *value < 0) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("{}: found '{}', expected a share such as 8% or 0.08", option, text));
  }
  if (!percent && *value > 1) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format(
            "{}: found '{}', expected a share up to 100 %, such as 8% or 0.08; did you mean {}%?",
            option, text, text));
  }
  return percent ? *value / 100 : *value;
}

Result<RunComparison> MeasureByRunning(const CompareRunOptions& options, const Console& console) {
  const RunContext& context = console.context();
  ETUDE_RETURN_IF_ERROR(ParseBars(DefaultBars(), options.bars));  // before anything is read
  ETUDE_ASSIGN_OR_RETURN(const Subject subject, FindSubject(options, context));
  ETUDE_ASSIGN_OR_RETURN(const StepBars bars, ParseBars(UsualBars(*subject.job), options.bars));
  ETUDE_RETURN_IF_ERROR(CheckBenchmark(subject, options));
  ETUDE_RETURN_IF_ERROR(TryCertificates(options.certificates, subject.folder));
  if (options.command.empty()) ETUDE_RETURN_IF_ERROR(CheckProgram(options.path, subject.command));
  ETUDE_RETURN_IF_ERROR(CheckOwn(options, *subject.folder.job));
  RunComparison run{.rank = subject.rank->number(),
                    .world_size = subject.world_size,
                    .command = subject.command,
                    .benchmark = NameOfBenchmark(options.benchmark),
                    .pairs_wanted = options.pairs,
                    .starts = options.starts,
                    .seed = static_cast<uint64_t>(options.seed),
                    .gaps = PassGaps(subject, options) ? "recorded" : "none",
                    .noise = MeasureNoise()};
  WarnOfNoise(run, bars, context);
  if (options.command.empty()) {
    console.Say("etude: running the command in job.json: " + Printable(ShellLine(run.command)));
  }
  const bool with_gpus = options.experimental || UsesGpu(*subject.job);
  const GpuSensors gpus = with_gpus ? GpuSensors::Open() : GpuSensors();
  std::array<std::string, kStepMetricCount> reasons;
  CompareRunOptions extended = options;  // with the options for deciding
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t start = 0; start < extended.starts; ++start) {
    ETUDE_ASSIGN_OR_RETURN(
        reasons, MeasureStart(subject, static_cast<size_t>(start), extended, gpus, context, run));
    if (start + 1 < extended.starts) continue;
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    JudgeRun(run, bars, reasons);
    if (!WantsMorePairs(options, run)) continue;
    ++extended.starts;
    extended.pairs += PairsOfStart(options);
    run.starts = extended.starts;
    run.pairs_wanted = extended.pairs;
  }
  if (!with_gpus) {
    std::erase_if(run.metrics,
                  [](const auto& row) { return row.metric >= StepMetric::kGpuEnergy; });
  }
  run.measured = Now();
  if (options.benchmark.empty()) {
    KeepResult(RunComparisonFile(subject.folder, *subject.rank), JsonText(ToJson(run), 1), context);
  }
  for (const std::string& path : options.certificates) {
    ETUDE_ASSIGN_OR_RETURN(const Certificate certificate, CertificateOf(subject, options, run));
    ETUDE_RETURN_IF_ERROR(WriteCertificate(certificate, path));
  }
  return run;
}

Result<ExitCode> CompareByRunning(const CompareRunOptions& options, const Console& console) {
  ETUDE_ASSIGN_OR_RETURN(const RunComparison run, MeasureByRunning(options, console));
  console.Print(options.json ? JsonText(ToJson(run), 1) : RunComparisonText(run));
  return run.all_met() ? ExitCode::kOk : ExitCode::kNo;
}

}  // namespace etude
