#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/machine/core_use.h"
#include "src/base/text/format_count.h"
#include "src/cli/app/commands.h"
#include "src/cli/app/stop_signal.h"
#include "src/cli/torch/calibrate_operators.h"
#include "src/cli/torch/replay_ranks.h"
#include "src/cli/torch/replay_source.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/toml_text.h"
#include "src/jobs/calibrate/calibration.h"
#include "src/jobs/calibrate/device_fit.h"
#include "src/jobs/calibrate/job_times.h"
#include "src/jobs/calibrate/network_fit.h"
#include "src/replay/operator_rounds.h"
#include "src/report/text/json_output.h"
#include "src/report/text/table.h"
#include "src/suite/this_machine.h"
#include "src/torch/group/collective_timer.h"
#include "src/torch/group/rank_group.h"
#include "src/torch/replay_device.h"

namespace etude {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kMostFileBytes = 64 << 20;
constexpr int64_t kMostRepeats = 100'000;
constexpr int64_t kMostRounds = 1000;
constexpr int64_t kMostAtOnce = 1024;
constexpr int64_t kUsualRepeats = 30;
constexpr int64_t kUsualRounds = 3;
constexpr std::chrono::minutes kTimeout{10};
constexpr int64_t kLead = 0;  // rank that writes the file
// Time of a computation, in ns, from which larger sizes are left out.
constexpr int64_t kLongestComputation = 300'000'000;
constexpr const char* kCpu = "cpu";
constexpr const char* kCuda = "cuda";

MeasuredMachine MachineNow(const std::string& device) {
  const MachineFacts facts = suite::ThisMachine();
  MeasuredMachine machine{.backend = device == kCpu ? "gloo" : "nccl",
                          .device = device,
                          .cores = std::nullopt,
                          .cpu = facts.cpu,
                          .system = facts.system,
                          .torch = std::string(CollectiveTimer::TorchVersion()),
                          .gpu = ""};
  if (const double cores = CoreLimit(); cores > 0) machine.cores = cores;
  return machine;
}

// Returns the first difference between machines, as "torch: found '2.7.0', expected '2.8.0'".
std::string DifferenceOf(const MeasuredMachine& found, const MeasuredMachine& expected) {
  const auto cores = [](const MeasuredMachine& machine) {
    return machine.cores ? fmt::format("{}", *machine.cores) : "";
  };
  const std::vector<std::tuple<std::string_view, std::string, std::string>> facts = {
      {"backend", found.backend, expected.backend},
      {"device", found.device, expected.device},
      {"cores", cores(found), cores(expected)},
      {"cpu", found.cpu, expected.cpu},
      {"system", found.system, expected.system},
      {"torch", found.torch, expected.torch},
      {"gpu", found.gpu, expected.gpu}};
  for (const auto& [name, one, other] : facts) {
    if (one != other) return fmt::format("{}: found '{}', expected '{}'", name, one, other);
  }
  return "";
}

// Returns whether a computation has these sizes, up to one that takes kLongestComputation.
bool HasSizes(const MeasuredComputation& computation, const std::vector<int64_t>& sizes) {
  const auto& points = computation.points;
  if (points.size() > sizes.size()) return false;
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].bytes != sizes[i]) return false;
  }
  return points.size() == sizes.size() || points.back().time_ns >= kLongestComputation;
}

class CalibrateCommand : public Command {
 public:
  std::string_view name() const override { return "calibrate"; }
  std::string_view summary() const override { return kCalibrateSummary; }

  void Declare(Options& options) override {
    options.Output("-o,--output", &output_, "FILE",
                   "machine file, or with --operators table; what it already has is not measured "
                   "again (default: machine.toml or operators.csv)",
                   {".toml", ".csv"});
    options.Value("--operators", &operators_.job, "JOB",
                  "measure the operators of a recorded job, by replaying them, instead of "
                  "communications");
    options.Choice("--in", &in_, {"step", "isolation"},
                   "--operators: measure them as part of the step, or each repeated alone "
                   "(default: step)");
    options.Value("--threads", &operators_.threads, "N",
                  "--operators: number of threads in PyTorch's pool (default: as recorded, else 1)",
                  {.least = 1, .most = kThreadsMax});
    options.Value("--at-once", &at_once_, "N",
                  "--operators: number of processes that run the step at the same time, as ranks "
                  "on this machine do (default: 1)",
                  {.least = 1, .most = kMostAtOnce});
    options.Values("--library", &operators_.libraries, "FILE",
                   "--operators: load a shared library that registers operators; its code runs");
    options.Choice("--device", &device_, {kCpu, kCuda},
                   "communicate on the CPU through Gloo, or through NCCL between GPUs of this "
                   "machine, one for each rank (default: cpu)");
    options.Value("--ranks", &ranks_, "COUNTS",
                  "numbers of ranks, such as 2,4; there may be more ranks than cores (default: 2)");
    options.Value(
        "--types", &types_, "TYPES",
        "communications and computations, such as all_reduce,message,copy (default: all)");
    options.Value(
        "--sizes", &sizes_, "SIZES",
        "bytes of a rank's input: powers of two of a range, or a list such as 8,4KiB,1MiB "
        "(default: 8-64MiB)");
    options.Value("--repeats", &repeats_, "N",
                  "max repetitions of each size in a round; large sizes are repeated less often "
                  "(default: 30)",
                  {.least = 1, .most = kMostRepeats});
    options.Value("--rounds", &rounds_, "N",
                  "number of rounds over all sizes, whose mean counts; with --operators max number "
                  "of rounds, at least 7, whose median counts (default: 3, or 40)",
                  {.least = 1, .most = kMostRounds});
    options.Values("--from", &from_, "JOB|FILE",
                   "take the times from the communications of a recorded job or from the output of "
                   "nccl-tests, and measure nothing");
    options.Flag("--force", &force_,
                 "write communications and computations that are too noisy, and mark them");
    options.Flag("--json", &json_, "print JSON");
    options.Footer(fmt::format(
        "Exit code 1 if a communication or computation is too noisy to be written: the median "
        "spread of its sizes (of a communication of those from 64 KiB, or of those below) is above "
        "{:.0f} %, or the median error at sizes between those of the file is above {:.0f} %. With "
        "--operators, if the spread of an operator is "
        "above {:.0f} % and "
        "1 µs.",
        kMostSpread * 100, kMostCheckError * 100, kMostOperatorSpread * 100));
  }

  Result<ExitCode> Run(const Console& console) override {
    if (is_stdout() && json_) {
      return MakeError(ErrorCode::kUsage,
                       "calibrate: -o - and --json both write to standard output");
    }
    if (!operators_.job.empty()) return RunOperators(console);
    if (!in_.empty() || operators_.threads || at_once_ || !operators_.libraries.empty()) {
      return MakeError(ErrorCode::kUsage,
                       "calibrate: --in, --threads, --at-once and --library require --operators");
    }
    if (output_.empty()) output_ = "machine.toml";
    if (!from_.empty()) return RunFrom(console);
    ETUDE_RETURN_IF_ERROR(ReadOptions());
    ETUDE_RETURN_IF_ERROR(ReadOutput(console.context()));
    if (is_all_kept()) return Answer(console);
    // The file is written after minutes only.
    if (!is_stdout()) ETUDE_RETURN_IF_ERROR(AtomicFile::Create(output_));
    std::vector<int64_t> all(static_cast<size_t>(most_ranks_));
    std::iota(all.begin(), all.end(), 0);
    // The file keeps what was measured before a signal. A second signal ends the command.
    ETUDE_ASSIGN_OR_RETURN(const auto stop, StopSignal::Make());
    stop_ = stop->flag();
    const Result<ExitCode> answer =
        RunLocalRanks({.size = std::ssize(all), .present = all}, kLead, kTimeout,
                      [&](RankGroup& group) { return RunRank(group, console); });
    if (answer || !*stop_) return answer;
    // The error may be that of a rank that lost its connection to the one that noticed the signal.
    ETUDE_RETURN_IF_ERROR(ReadOutput(console.context()));
    return Interrupted();
  }

 private:
  // Measures the operators of a recorded job.
  Result<ExitCode> RunOperators(const Console& console) {
    if (!device_.empty() || ranks_ || types_ || sizes_ || repeats_ || !from_.empty()) {
      return MakeError(ErrorCode::kUsage,
                       "calibrate: --device, --ranks, --types, --sizes, --repeats and --from "
                       "cannot be combined with --operators");
    }
    if (rounds_.value_or(kLeastRounds) < kLeastRounds) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("calibrate: --rounds: found {}, expected at least {} with "
                                   "--operators: fewer rounds show no spread",
                                   *rounds_, kLeastRounds));
    }
    operators_.output = output_.empty() ? "operators.csv" : output_;
    if (!in_.empty()) operators_.in = in_;
    operators_.rounds = rounds_.value_or(kUsualMostRounds);
    operators_.at_once = at_once_.value_or(1);
    if (operators_.at_once > 1 && operators_.in != "step") {
      return MakeError(ErrorCode::kUsage,
                       "calibrate: --at-once cannot be combined with --in isolation");
    }
    operators_.force = force_;
    operators_.json = json_;
    return CalibrateOperators(operators_, console);
  }

  // Writes the times of a recorded job.
  Result<ExitCode> RunFrom(const Console& console) {
    if (!device_.empty() || ranks_ || types_ || sizes_ || repeats_ || rounds_ || force_) {
      return MakeError(ErrorCode::kUsage,
                       "calibrate: --from measures nothing, so only -o and --json can be combined "
                       "with it");
    }
    ETUDE_ASSIGN_OR_RETURN(std::optional<JobTimes> found,
                           TimesOfNcclTests(from_, console.context()));
    if (!found) {
      ETUDE_ASSIGN_OR_RETURN(found, TimesOfJob(from_, console.strict(), console.context()));
    }
    JobTimes& times = *found;
    file_ = std::move(times.file);
    ETUDE_ASSIGN_OR_RETURN(file_.network, FitNetwork(file_, console.context()));
    ETUDE_RETURN_IF_ERROR(WriteFile(output_, MachineFileText(file_)));
    if (times.left_out > 0) {
      console.Complain(
          fmt::format("warning: {} left out: times, sizes or types are unknown, clocks disagree, "
                      "or ranks have no trace",
                      FormatCount(times.left_out, "communication")));
    }
    size_t points = 0;
    for (const MeasuredSeries& series : file_.series) points += series.points.size();
    constexpr size_t kParameters = 5;  // of FittedNetwork
    if (file_.network && points <= kParameters) {
      console.Complain(fmt::format(
          "warning: the network has up to {} parameters, and was fitted to {} only, so that its "
          "times of other sizes and ranks are uncertain",
          kParameters, FormatCount(points, "time")));
    }
    if (is_stdout()) return ExitCode::kOk;
    std::vector<CalibratedSeries> all;
    for (const MeasuredSeries& series : file_.series) all.push_back({series, {}, "recorded"});
    ETUDE_RETURN_IF_ERROR(Print(CalibrationTable(all), ComputationTable({}), console));
    return ExitCode::kOk;
  }

  // Whether the file goes to standard output, at once and without a table.
  bool is_stdout() const { return output_ == "-"; }

  // A kind of communication at a number of ranks.
  struct Item {
    MeasuredKind kind;
    int64_t ranks = 2;
    SizePlan plan;
    bool kept = false;  // an earlier call measured it
    std::string state = "kept";
  };
  // A computation of several ranks at the same time.
  struct Task {
    ComputationType type = ComputationType::kCopy;
    DType dtype = DType::kFloat32;
    int64_t ranks = 1;
    std::vector<int64_t> sizes;
    bool kept = false;
    std::string state = "kept";
  };

  bool is_all_kept() const {
    return std::ranges::all_of(items_, &Item::kept) && std::ranges::all_of(tasks_, &Task::kept);
  }

  std::string device() const { return device_.empty() ? kCpu : device_; }
  int64_t rounds() const { return rounds_.value_or(kUsualRounds); }
  uint64_t Measurements(const Item& item) const {
    return (item.plan.sizes.size() + item.plan.checks.size()) * static_cast<uint64_t>(rounds());
  }
  uint64_t Measurements(const Task& task) const {
    return task.sizes.size() * static_cast<uint64_t>(rounds());
  }

  Status ReadOptions() {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> counts,
                           ParseRankCounts(ranks_.value_or("2")));
    ETUDE_ASSIGN_OR_RETURN(const CalibratedTypes types, ParseTypes(types_.value_or("")));
    ETUDE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                           ParseSizes(sizes_.value_or("8-64MiB")));
    const auto add = [&](const MeasuredKind& kind, int64_t ranks) {
      const SizePlan plan = PlanSizes(kind, ranks, sizes);
      items_.push_back({kind, ranks, plan});
      total_ += Measurements(items_.back());
    };
    // A message has two ranks.
    if (std::ranges::count(types.kinds, kMessageKind) != 0) add(kMessageKind, 2);
    for (const int64_t ranks : counts) {
      for (const MeasuredKind& kind : types.kinds) {
        if (kind != kMessageKind) add(kind, ranks);
      }
    }
    most_ranks_ = counts.back();
    const bool on_cpu = device() == kCpu;
    // As many ranks as have a core each.
    const auto cores = static_cast<int64_t>(CoreLimit());  // 0: unknown
    const int64_t computing =
        on_cpu && CoreLimit() > 0 ? std::clamp<int64_t>(cores, 1, most_ranks_) : most_ranks_;
    for (const ComputationType type : types.computations) {
      for (const DType dtype : TypesOfComputation(type, on_cpu)) {
        const Task task{type, dtype, computing, SizesOfComputation(type, dtype, on_cpu, sizes)};
        if (task.sizes.empty() && types_) {
          return MakeError(ErrorCode::kUsage,
                           fmt::format("--sizes: found no size of a square matrix of {} whose rows "
                                       "are 2^n or 3*2^n up to {}, which product requires",
                                       Name(dtype), MostRows(on_cpu)));
        }
        if (task.sizes.empty()) continue;
        tasks_.push_back(task);
        total_ += Measurements(task);
      }
    }
    return {};
  }

  // Reads what an earlier call measured.
  Status ReadOutput(const RunContext& context) {
    file_.machine = MachineNow(device());
    std::error_code error;
    if (is_stdout() || !std::filesystem::exists(output_, error)) return {};
    ETUDE_ASSIGN_OR_RETURN(const std::string text,
                           ReadTomlText(output_, "a machine file", kMostFileBytes, context.limits));
    ETUDE_ASSIGN_OR_RETURN(MachineFile found, ParseMachineFile(text, output_));
    file_.machine.gpu = found.machine.gpu;  // which only the ranks compare
    ETUDE_RETURN_IF_ERROR(CheckSame(found.machine));
    file_ = std::move(found);
    for (Item& item : items_) {
      const MeasuredSeries* series = file_.Find(item.kind, item.ranks);
      const bool is_noisy = series != nullptr && series->noisy && !force_;
      item.kept = !is_noisy && Has(file_, item.kind, item.ranks, item.plan);
    }
    for (Task& task : tasks_) {
      const MeasuredComputation* measured =
          file_.FindComputation(task.type, task.dtype, task.ranks);
      task.kept =
          measured != nullptr && (!measured->noisy || force_) && HasSizes(*measured, task.sizes);
    }
    return {};
  }

  Status CheckSame(const MeasuredMachine& found) const {
    const std::string difference = DifferenceOf(found, file_.machine);
    if (difference.empty()) return {};
    return BadInput(
        fmt::format("{}: the file describes another machine: {}; choose another file "
                    "with -o",
                    output_, difference));
  }

  // Chooses the rank's device, "cpu" or "cuda:0". After the fork: GPUs cannot be used by a parent
  // and its children.
  Result<std::string> UseDevice(RankGroup& group) {
    if (device() == kCpu) return std::string(kCpu);
    ETUDE_RETURN_IF_ERROR(group.CheckDevice(kCuda));
    ETUDE_ASSIGN_OR_RETURN(std::string own, DeviceAt(kCuda, {.number = group.local_rank()}));
    group.UseDevice(own);
    SetDevice(own);
    const MeasuredMachine found = file_.machine;
    ETUDE_ASSIGN_OR_RETURN(file_.machine.gpu, CollectiveTimer::NameOfDevice(own));
    // The file has the first rank's GPU.
    const bool is_new = file_.series.empty() && file_.computations.empty();
    if (group.rank() == kLead && !is_new) ETUDE_RETURN_IF_ERROR(CheckSame(found));
    return own;
  }

  // Measures as one of the ranks; the first one writes the file and prints the answer.
  Result<ExitCode> RunRank(RankGroup& group, const Console& console) {
    ETUDE_ASSIGN_OR_RETURN(const std::string own, UseDevice(group));
    std::map<int64_t, std::unique_ptr<CollectiveTimer>> timers;  // by number of ranks
    const auto make_timers = [&](const auto& all) -> Status {
      for (const auto& one : all) {
        if (one.kept || group.rank() >= one.ranks || timers.contains(one.ranks)) continue;
        ETUDE_ASSIGN_OR_RETURN(timers[one.ranks], CollectiveTimer::Make(group, one.ranks, own));
      }
      return {};
    };
    ETUDE_RETURN_IF_ERROR(make_timers(items_));
    ETUDE_RETURN_IF_ERROR(make_timers(tasks_));
    CommLog nothing;  // calls are not checked in advance: all ranks run the same items
    nothing.rank = group.rank();
    nothing.world_size = group.size();
    ETUDE_RETURN_IF_ERROR(group.Connect(nothing));
    const auto measure = [&](auto& all) -> Status {
      for (auto& one : all) {
        if (one.kept) {
          done_ += Measurements(one);
          continue;
        }
        if (group.rank() < one.ranks) {
          ETUDE_RETURN_IF_ERROR(Measure(one, *timers[one.ranks], group.rank() == kLead, console));
        }
        ETUDE_RETURN_IF_ERROR(group.Meet());
      }
      return {};
    };
    ETUDE_RETURN_IF_ERROR(measure(items_));
    ETUDE_RETURN_IF_ERROR(measure(tasks_));
    if (group.rank() != kLead) return ExitCode::kOk;
    return Answer(console);
  }

  tl::unexpected<Error> Interrupted() const {
    return MakeError(
        ErrorCode::kInterrupted,
        is_stdout()
            ? std::string("interrupted")
            : fmt::format("interrupted; {} has {} of {}; repeat the command to continue", output_,
                          std::ranges::count_if(items_, &Item::kept) +
                              std::ranges::count_if(tasks_, &Task::kept),
                          FormatCount(items_.size() + tasks_.size(), "measurement")));
  }

  // Shows progress of the next size.
  Status Next(std::string_view what, const Console& console) {
    if (*stop_) return MakeError(ErrorCode::kInterrupted, "interrupted");
    console.context().Progress(what, done_, total_);
    return {};
  }

  Status Measure(Task& task, CollectiveTimer& timer, bool is_lead, const Console& console) {
    MeasuredComputation all{.type = task.type,
                            .dtype = task.dtype,
                            .ranks = task.ranks,
                            .noisy = false,
                            .points = std::vector<MeasuredComputation::Point>(task.sizes.size())};
    const std::string what =
        fmt::format("measure {} of {}: sizes", NameOfComputation(task.type), Name(task.dtype));
    for (int64_t round = 0; round < rounds(); ++round) {
      for (size_t i = 0; i < all.points.size(); ++i) {
        if (is_lead) ETUDE_RETURN_IF_ERROR(Next(what, console));
        ++done_;
        ETUDE_ASSIGN_OR_RETURN(
            const MeasuredComputation::Point point,
            timer.Measure(task.type, task.dtype, task.sizes[i], repeats_.value_or(kUsualRepeats)));
        AddRound(point, round, all.points[i]);
        // The same on all ranks.
        if (round == 0 && point.time_ns >= kLongestComputation) all.points.resize(i + 1);
      }
      done_ += task.sizes.size() - all.points.size();
    }
    if (!is_lead) return {};
    task.state = StateOf(WhyNoisy(all));
    all.noisy = task.state != "measured";
    if (task.state == "refused") {
      refused_tasks_.push_back({all, task.state});
      return {};
    }
    Put(all, file_);
    return is_stdout() ? Status() : WriteFile(output_, MachineFileText(file_));
  }

  Status Measure(Item& item, CollectiveTimer& timer, bool is_lead, const Console& console) {
    using Points = std::vector<MeasuredSeries::Point>;
    const auto measure = [&](const std::vector<int64_t>& sizes, int64_t round,
                             Points& points) -> Status {
      points.resize(sizes.size());
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (is_lead) {
          ETUDE_RETURN_IF_ERROR(
              Next(fmt::format("measure {} of {} ranks: sizes", NameOfKind(item.kind), item.ranks),
                   console));
        }
        ++done_;
        ETUDE_ASSIGN_OR_RETURN(
            const MeasuredSeries::Point point,
            timer.Measure(item.kind, sizes[i], repeats_.value_or(kUsualRepeats)));
        AddRound(point, round, points[i]);
      }
      return {};
    };
    MeasuredSeries series{.kind = item.kind, .ranks = item.ranks, .noisy = false, .points = {}};
    Points checks;
    for (int64_t round = 0; round < rounds(); ++round) {
      ETUDE_RETURN_IF_ERROR(measure(item.plan.sizes, round, series.points));
      ETUDE_RETURN_IF_ERROR(measure(item.plan.checks, round, checks));
    }
    MeasuredCheck check{.kind = item.kind, .ranks = item.ranks, .points = {}};
    for (const MeasuredSeries::Point& point : checks) {
      check.points.push_back({.bytes = point.bytes, .time_ns = point.time_ns, .predicted_ns = 0});
    }
    ETUDE_RETURN_IF_ERROR(Predict(series, check));
    return is_lead ? Keep(item, series, check) : Status();
  }

  // Returns the state of what was measured, and keeps the reason why it is noisy; "": it is not.
  std::string StateOf(const std::string& noise) {
    if (noise.empty()) return "measured";
    noises_.push_back(noise);
    return force_ ? "noisy" : "refused";
  }

  // Adds a measured communication to the file, unless it is too noisy.
  Status Keep(Item& item, MeasuredSeries& series, const MeasuredCheck& check) {
    item.state = StateOf(WhyNoisy(series, &check));
    series.noisy = item.state != "measured";
    if (item.state == "refused") {
      refused_.push_back({series, check, item.state});
      return {};
    }
    Put(series, check, file_);
    return is_stdout() ? Status() : WriteFile(output_, MachineFileText(file_));
  }

  // Fits the network, writes the file and prints the answer.
  Result<ExitCode> Answer(const Console& console) {
    std::vector<CalibratedSeries> all;
    for (const Item& item : items_) {
      const MeasuredSeries* series = file_.Find(item.kind, item.ranks);
      if (item.state == "refused" || series == nullptr) continue;
      const MeasuredCheck* check = file_.FindCheck(item.kind, item.ranks);
      all.push_back({*series, check == nullptr ? MeasuredCheck() : *check, item.state});
    }
    all.insert(all.end(), refused_.begin(), refused_.end());
    std::vector<CalibratedComputation> computations;
    for (const Task& task : tasks_) {
      const MeasuredComputation* found = file_.FindComputation(task.type, task.dtype, task.ranks);
      if (task.state == "refused" || found == nullptr) continue;
      computations.push_back({*found, task.state});
    }
    computations.insert(computations.end(), refused_tasks_.begin(), refused_tasks_.end());
    console.context().Progress("measure", total_, total_);
    const bool has_network = file_.network.has_value();
    if (!has_network) {
      RunContext context = console.context();
      context.stop = stop_;
      ETUDE_ASSIGN_OR_RETURN(file_.network, FitNetwork(file_, context));
    }
    if (is_stdout() || file_.network.has_value() != has_network) {
      ETUDE_RETURN_IF_ERROR(WriteFile(output_, MachineFileText(file_)));
    }
    if (!is_stdout()) {
      ETUDE_RETURN_IF_ERROR(Print(CalibrationTable(all), ComputationTable(computations), console));
    }
    for (const std::string& noise : noises_) {
      console.Complain(
          fmt::format("{}: {}", force_ ? "warning" : "too noisy to be written", noise));
    }
    return refused_.empty() && refused_tasks_.empty() ? ExitCode::kOk : ExitCode::kNo;
  }

  Status Print(const Table& communications, const Table& computations,
               const Console& console) const {
    const MeasuredMachine& machine = file_.machine;
    std::vector<Table> tables{communications, computations, NetworkTable(file_.network)};
    ETUDE_ASSIGN_OR_RETURN(tables.emplace_back(), NetworkFitTable(file_));
    if (json_) {
      ordered_json json{{"output", output_},
                        {"backend", machine.backend},
                        {"device", machine.device},
                        {"cores", OrNull(machine.cores)}};
      for (const Table& table : tables) json[table.key] = etude::ToJson(table);
      console.Print(JsonText(json));
      return {};
    }
    std::string text =
        fmt::format("{}: {} on {}, {} cores, torch {}\n", output_, machine.backend, machine.device,
                    machine.cores ? fmt::format("{}", *machine.cores) : "unknown",
                    machine.torch.empty() ? "unknown" : machine.torch);
    for (const Table& table : tables) {
      if (!table.rows.empty()) text += ToText(table) + "\n";
    }
    console.Print(text);
    return {};
  }

  std::string output_;
  OperatorCalibration operators_;
  std::string in_;      // "" unless given
  std::string device_;  // "" unless given
  std::optional<std::string> ranks_;
  std::optional<std::string> types_;
  std::optional<std::string> sizes_;
  std::optional<int64_t> at_once_;
  std::optional<int64_t> repeats_;
  std::optional<int64_t> rounds_;
  std::vector<std::string> from_;
  bool force_ = false;
  bool json_ = false;
  std::vector<Item> items_;
  std::vector<Task> tasks_;
  int64_t most_ranks_ = 2;
  uint64_t total_ = 0;  // measurements of all items and tasks
  uint64_t done_ = 0;   // likewise
  MachineFile file_;
  std::vector<CalibratedSeries> refused_;
  std::vector<CalibratedComputation> refused_tasks_;
  std::vector<std::string> noises_;
  const std::atomic<bool>* stop_ = nullptr;  // set by a signal, for all ranks
};

}  // namespace

std::unique_ptr<Command> MakeCalibrateCommand() { return std::make_unique<CalibrateCommand>(); }

}  // namespace etude
