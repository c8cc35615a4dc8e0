#include "src/torch/replayer.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/headeronly/version.h>

#include "src/analysis/data_flow.h"
#include "src/analysis/host_gaps.h"
#include "src/analysis/recorded_step.h"
#include "src/analysis/replay_match.h"
#include "src/analysis/time_summary.h"
#include "src/torch/bound_operator.h"
#include "src/torch/calibration.h"
#include "src/torch/device_map.h"
#include "src/torch/operator_name.h"
#include "src/torch/operator_selection.h"
#include "src/torch/outside_memory.h"
#include "src/torch/outside_values.h"
#include "src/torch/program_heap.h"
#include "src/torch/replay_plan.h"
#include "src/torch/replay_recording.h"
#include "src/torch/step_runner.h"

namespace etude {
namespace {

Nanos Clock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return Nanos{now.tv_sec * 1'000'000'000 + now.tv_nsec};
}

// CPU time of this process and of its children that have ended.
Nanos CpuTimeWithChildren() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto nanos = [](const timeval& time) {
    return time.tv_sec * 1'000'000'000 + time.tv_usec * 1000;
  };
  return Clock(CLOCK_PROCESS_CPUTIME_ID) + Nanos{nanos(usage.ru_utime) + nanos(usage.ru_stime)};
}

// Memory the machine can give without swapping; 0 if it does not say.
int64_t AvailableMemory() {
  std::FILE* file = std::fopen("/proc/meminfo", "r");
  if (file == nullptr) return 0;
  char line[256];
  long long kilobytes = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "MemAvailable: %lld kB", &kilobytes) == 1) break;
  }
  std::fclose(file);
  return int64_t{kilobytes} * 1024;
}

// Bytes of this process's data: what RLIMIT_DATA bounds. 0 if the system does not say.
int64_t DataBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  long long pages = 0;
  const int got = std::fscanf(file, "%*d %*d %*d %*d %*d %lld", &pages);
  std::fclose(file);
  return got == 1 ? int64_t{pages} * sysconf(_SC_PAGESIZE) : 0;
}

// Lets allocations of more than `bytes` from now on fail, instead of having the process killed.
void LimitMemory(int64_t bytes) {
  const auto most =
      static_cast<rlim_t>(DataBytes()) + static_cast<rlim_t>(std::max<int64_t>(bytes, 0));
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  setrlimit(RLIMIT_DATA, &limit);
}

bool HasDevice(c10::DeviceType type, int index = 0) {
  return c10::impl::hasDeviceGuardImpl(type) &&
         c10::impl::VirtualGuardImpl(type).deviceCount() > index;
}

// Whether an operator of the step used a device other than the CPU.
bool UsesDevice(const RecordedStep& step, const DataFlow& flow) {
  const Trace& trace = step.trace();
  for (const NodeId node : step.top_operators()) {
    for (const DataFlow::Use& use : flow.inputs(node)) {
      const std::string_view device = trace.text(trace.tensor(use.tensor).device);
      if (!device.empty() && !device.starts_with("cpu")) return true;
    }
  }
  return false;
}

Result<std::string> ChooseDevice(const std::string& wanted, bool trace_uses_device) {
  if (wanted.empty()) {
    return trace_uses_device && HasDevice(c10::DeviceType::CUDA) ? std::string("cuda:0")
                                                                 : std::string("cpu");
  }
  try {
    c10::Device device(wanted);
    if (!device.is_cpu() && !device.is_cuda()) throw std::invalid_argument(wanted);
    if (device.is_cpu()) return std::string("cpu");
    if (!device.has_index()) device.set_index(0);
    if (!HasDevice(device.type(), device.index())) {
      return MakeError(ErrorCode::kUnavailable, "device '" + wanted + "' is not available here");
    }
    return device.str();
  } catch (const std::exception&) {
    return MakeError(ErrorCode::kUsage,
                     "--device: found '" + wanted + "', expected cpu, cuda or cuda:N");
  }
}

}  // namespace

class Replayer::Impl {
 public:
  Impl(const Trace& trace, ReplayOptions options, const RunContext& context, RecordedStep step,
       std::string device)
      : trace_(trace),
        options_(std::move(options)),
        context_(context),
        step_(std::move(step)),
        flow_(step_),
        devices_(std::move(device)),
        binder_(trace, devices_, options_.group),
        selection_(step_, flow_),
        memory_(trace, devices_, options_.seed),
        runner_(trace, flow_, devices_) {}

  // What comes before the trial.
  void Choose() {
    free_at_start_ = AvailableMemory();
    FollowTensors();
    devices_.set_step_uses_device(UsesDevice(step_, flow_));
    at::set_num_threads(static_cast<int>(options_.threads));
    at::Generator generator = at::globalContext().defaultGenerator(c10::Device(devices_.target()));
    generator.set_current_seed(options_.seed);
    rules_ = InferFillRules(step_, flow_);
    ApplyNames();
    BindAll();
  }

  Result<std::optional<Calibration>> Trial() {
    if (!devices_.target_is_cpu()) return std::nullopt;
    Choose();
    ETUDE_ASSIGN_OR_RETURN(Calibration found, TryOutInChild());
    return found;
  }

  Status SetUp() {
    const Nanos begin = CpuTimeWithChildren();
    Choose();
    ETUDE_RETURN_IF_ERROR(Calibrate());
    ETUDE_RETURN_IF_ERROR(FindGaps());
    // Not before the trial: a group has threads, which a forked child has not.
    if (options_.group != nullptr) ETUDE_RETURN_IF_ERROR(options_.group->Connect());
    report_.setup = CpuTimeWithChildren() - begin - report_.trial - report_.fill;
    const Nanos first_begin = CpuTimeWithChildren();
    const Nanos filled = report_.fill;
    ETUDE_RETURN_IF_ERROR(RunFirstStep());
    if (options_.mmap_threshold) RaiseMapThreshold(*options_.mmap_threshold);
    report_.first_step = CpuTimeWithChildren() - first_begin - (report_.fill - filled);
    Describe();
    return {};
  }

  Result<StepSample> RunStep(GapMode mode) {
    ETUDE_RETURN_IF_ERROR(BeginStep());
    PeakResident peak;
    peak.Begin();
    const ProcessCounts counts = ProcessCounts::Now();
    const Nanos cpu = Clock(CLOCK_PROCESS_CPUTIME_ID);
    const Nanos wall = Clock(CLOCK_MONOTONIC);
    Nanos gaps;
    if (mode == GapMode::kRecorded) {
      ETUDE_RETURN_IF_ERROR(runner_.RunWithGaps(coerce_, *gaps_, gaps));
    } else {
      ETUDE_RETURN_IF_ERROR(runner_.Run(coerce_));
    }
    Synchronize();
    const Nanos wall_end = Clock(CLOCK_MONOTONIC);
    const Nanos cpu_end = Clock(CLOCK_PROCESS_CPUTIME_ID);
    const ProcessCounts counts_end = ProcessCounts::Now();
    return StepSample{.wall = wall_end - wall,
                      .cpu = cpu_end - cpu,
                      .gaps = gaps,
                      .counts = counts_end - counts,
                      .resident = ResidentBytes(),
                      .peak_resident = peak.bytes()};
  }

  // Records a few more steps as the original was recorded, and compares.
  Status Record() {
    // The first one finds the recorder's memory and caches cold.
    const int64_t steps = 1 + std::clamp<int64_t>(options_.iterations, 1, 3);
    ETUDE_ASSIGN_OR_RETURN(
        const Trace replayed,
        RecordSteps(
            steps, [&](int64_t index) { return RunMarked(index); }, options_.recording, context_));
    std::vector<std::vector<Nanos>> times(runner_.plan().ops.size());
    for (int64_t i = 1; i < steps; ++i) {
      ETUDE_ASSIGN_OR_RETURN(const RecordedStep step,
                             RecordedStep::Select(replayed, "", static_cast<size_t>(i)));
      AddTimes(step, times);
      if (i + 1 < steps) continue;
      report_.kernels =
          MatchKernels(step_, selection_.top(), step, [&](NodeId node) { return Duration(node); });
    }
    SumTimes(times);
    return {};
  }

  void CheckValues() {
    report_.non_finite = memory_.CountNonFinite();
    report_.denormal = memory_.CountDenormal();
  }

  bool knows_gaps() const { return gaps_.has_value(); }
  const ReplayReport& report() const { return report_; }

 private:
  Status RunMarked(int64_t index) {
    ETUDE_RETURN_IF_ERROR(BeginStep());
    at::RecordFunction mark(at::RecordScope::USER_SCOPE);
    if (mark.isActive()) mark.before(RecordedStepMark(index));
    return runner_.Run(coerce_);
  }

  // Adds the time of each operator of the plan to its row of `times`: the topmost operators of a
  // recorded replay, but for those that bring results to their recorded sizes.
  void AddTimes(const RecordedStep& replayed, std::vector<std::vector<Nanos>>& times) const {
    const auto& ops = runner_.plan().ops;
    size_t i = 0;
    for (const NodeId node : replayed.top_operators()) {
      if (i == ops.size()) break;
      const Trace& trace = replayed.trace();
      if (OperatorNameOf(trace, node) != OperatorNameOf(trace_, ops[i].node)) continue;
      if (const auto time = trace.duration(node)) times[i].push_back(*time);
      ++i;
    }
  }

  // The rows of operators by phase and name. Operators that are skipped took no time.
  void SumTimes(const std::vector<std::vector<Nanos>>& times) {
    OperatorTimeSum sum;
    const auto add = [&](NodeId node, std::optional<Nanos> replayed) {
      sum.Add(PhaseAt(step_, step_.position(node)), OperatorNameOf(trace_, node), 1, Duration(node),
              replayed);
    };
    const auto& ops = runner_.plan().ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      add(ops[i].node, times[i].empty() ? std::nullopt : std::optional(Summarise(times[i]).median));
    }
    for (const auto& skipped : selection_.skipped()) add(skipped.node, Nanos{});
    report_.operator_times = sum.Rows();
  }

  // What comes before a step and belongs to none: its memory, and the other ranks.
  Status BeginStep() {
    ETUDE_RETURN_IF_ERROR(memory_.Restore());
    return MeetRanks();
  }
  Status MeetRanks() { return options_.group == nullptr ? Status() : options_.group->Meet(); }

  void Synchronize() const {
    if (devices_.target_is_cpu()) return;
    const c10::Device device(devices_.target());
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
  }

  std::optional<Nanos> Duration(NodeId node) const {
    const auto own = trace_.duration(node);
    if (own) return own;
    return node.index() < options_.durations.size() ? options_.durations[node.index()]
                                                    : std::nullopt;
  }

  bool NameIn(const std::vector<std::string>& names, NodeId node) const {
    return std::ranges::any_of(names, [&](const std::string& name) {
      return name == OperatorNameOf(trace_, node) ||
             name == BaseOperatorName(SchemaOf(trace_, node));
    });
  }

  void ApplyNames() {
    if (!options_.only.empty()) {
      selection_.Keep([&](NodeId node) { return NameIn(options_.only, node); });
    }
    const std::vector<NodeId> nodes(selection_.nodes().begin(), selection_.nodes().end());
    for (const NodeId node : nodes) {
      if (NameIn(options_.skip, node)) selection_.Skip(node, "asked for by --skip");
    }
  }

  // Binds `node` unless it is bound; an error's message is the reason.
  Status Bind(NodeId node) {
    if (bound_.contains(node)) return {};
    auto bound = binder_.Bind(node);
    if (!bound) return tl::unexpected<Error>(bound.error());
    bound_.emplace(node, *std::move(bound));
    return {};
  }

  // Whether the parts of `node` do all that it does: it is made of operators only, or unknown here.
  bool ConsistsOfParts(NodeId node) {
    const auto found = bound_.find(node);
    if (found != bound_.end()) return found->second.is_composite();
    return !binder_.IsRegistered(node) &&
           ReasonNotToRun(FullOperatorName(SchemaOf(trace_, node))).empty();
  }

  bool UseParts(NodeId node) {
    return ConsistsOfParts(node) &&
           selection_.UseParts(node, [&](NodeId part) { return Bind(part).has_value(); });
  }

  void BindAll() {
    const std::vector<NodeId> nodes(selection_.nodes().begin(), selection_.nodes().end());
    for (const NodeId node : nodes) {
      const Status status = Bind(node);
      if (!status && !UseParts(node)) selection_.Skip(node, status.error().message);
    }
  }

  // Plans; operators inside which memory was made that others read are replaced by their parts
  // where that brings the memory to light.
  Result<ReplayPlan> Plan() {
    while (true) {
      ETUDE_ASSIGN_OR_RETURN(ReplayPlan plan, PlanReplay(step_, flow_, selection_.nodes()));
      bool changed = false;
      std::unordered_set<NodeId> seen;
      for (const HiddenResult& hidden : plan.hidden) {
        if (seen.insert(hidden.maker).second) changed |= UseParts(hidden.maker);
      }
      if (!changed) return plan;
    }
  }

  Status CheckMemory(const ReplayPlan& plan) const {
    int64_t limit =
        static_cast<int64_t>(std::min<uint64_t>(context_.limits.replay_bytes, INT64_MAX));
    std::string name = "limit 'replay_bytes'";
    if (limit == 0) {
      limit = free_at_start_;
      name = "memory that is free on this machine now";
      if (options_.group != nullptr) {
        limit /= options_.group->size();
        name += " for each rank";
      }
    }
    int64_t needed = 0;
    if (__builtin_add_overflow(plan.peak_bytes, plan.written_bytes, &needed)) needed = INT64_MAX;
    if (limit == 0 || needed <= limit) return {};
    return BadInput("the step needs " + std::to_string(needed) + " bytes at its peak (" +
                    std::to_string(plan.outside_bytes) + " for what comes from outside, " +
                    std::to_string(plan.written_bytes) + " to set back what it changes), " + name +
                    ": " + std::to_string(limit));
  }

  Status Load(ReplayPlan plan) {
    ETUDE_RETURN_IF_ERROR(CheckMemory(plan));
    std::vector<const BoundOperator*> operators;
    operators.reserve(plan.ops.size());
    for (const PlannedOp& op : plan.ops) operators.push_back(&bound_.at(op.node));
    runner_.Load(std::move(plan), std::move(operators));
    return {};
  }

  Status Provide(const OutsideStorage& wanted) {
    const Nanos begin = Clock(CLOCK_PROCESS_CPUTIME_ID);
    ETUDE_RETURN_IF_ERROR(memory_.Provide(runner_.plan(), wanted, rules_, runner_.slots()));
    report_.fill = report_.fill + (Clock(CLOCK_PROCESS_CPUTIME_ID) - begin);
    return {};
  }

  // Makes all memory that the step needs from outside; `later` says what can wait.
  Status ProvideAll(const std::function<bool(const OutsideStorage&)>& later) {
    for (const OutsideStorage& wanted : runner_.plan().outside) {
      if (!later(wanted)) ETUDE_RETURN_IF_ERROR(Provide(wanted));
    }
    return {};
  }

  static bool IsState(const OutsideStorage& wanted) { return wanted.made_in_first_step; }
  static bool Nothing(const OutsideStorage&) { return false; }

  // Runs the step for the first time. As in a program's first step, the optimizer makes its state,
  // all at once, when it gets to work.
  Status RunFirstStep() {
    ETUDE_RETURN_IF_ERROR(ProvideAll(IsState));
    const auto& outside = runner_.plan().outside;
    const auto first = std::ranges::find_if(outside, IsState);
    ETUDE_RETURN_IF_ERROR(MeetRanks());
    const std::optional<Bytes> resident = ResidentBytes();
    if (resident) {
      // Copies are no memory of the recorded program, but what makes the step repeatable.
      report_.resident_before_steps = Bytes{resident->count - memory_.copied_bytes()};
    }
    if (first == outside.end()) return runner_.Run(coerce_);
    return runner_.RunWith(coerce_, [&](size_t op) -> Status {
      return op == first->first_use ? ProvideAll(Nothing) : Status();
    });
  }

  // Follows what trying out the step has found, here or earlier. Devices whose driver does not
  // survive a fork are tried out in this process.
  Status Calibrate() {
    if (!devices_.target_is_cpu()) {
      const Nanos begin = CpuTimeWithChildren();
      ETUDE_ASSIGN_OR_RETURN(const Calibration found, TryOut([](uint32_t) {}));
      report_.trial = CpuTimeWithChildren() - begin - report_.fill;
      ETUDE_RETURN_IF_ERROR(memory_.Refill(Versions(found.changed)));
      return Adopt(found);
    }
    if (options_.calibration == nullptr) {
      ETUDE_ASSIGN_OR_RETURN(const Calibration found, TryOutInChild());
      ETUDE_RETURN_IF_ERROR(Follow(found));
      return Adopt(found);
    }
    const Calibration& found = *options_.calibration;
    for (const TrialVerdict& verdict : found.deadly) {
      selection_.Skip(step_.nodes()[verdict.position], verdict.reason);
    }
    ETUDE_ASSIGN_OR_RETURN(ReplayPlan plan, Plan());
    ETUDE_RETURN_IF_ERROR(Load(std::move(plan)));
    ETUDE_RETURN_IF_ERROR(ProvideAll(IsState));
    ETUDE_RETURN_IF_ERROR(Follow(found));
    return Adopt(found);
  }

  // Tries the step out, in a child process so that this one's heap stays like that of a program
  // that starts its first step. The child finds the memory made. An operator that kills the child
  // is skipped.
  Result<Calibration> TryOutInChild() {
    ETUDE_ASSIGN_OR_RETURN(ReplayPlan plan, Plan());
    ETUDE_RETURN_IF_ERROR(Load(std::move(plan)));
    ETUDE_RETURN_IF_ERROR(ProvideAll(IsState));
    std::vector<TrialVerdict> deadly;
    constexpr int kDeaths = 16;
    for (int deaths = 0; deaths < kDeaths; ++deaths) {
      std::optional<ChildDeath> died;
      const Nanos begin = CpuTimeWithChildren();
      const auto answer = RunInChild(
          [&](const Announce& announce) -> Result<std::string> {
            if (free_at_start_ > 0) LimitMemory(free_at_start_ - memory_.bytes());
            ETUDE_ASSIGN_OR_RETURN(const Calibration found, TryOut(announce));
            return Serialise(found);
          },
          died);
      report_.trial = report_.trial + (CpuTimeWithChildren() - begin);
      if (answer) {
        ETUDE_ASSIGN_OR_RETURN(Calibration found, ParseCalibration(*answer));
        found.deadly = std::move(deadly);
        return found;
      }
      if (!died || died->position >= step_.nodes().size()) {
        return tl::unexpected<Error>(answer.error());
      }
      deadly.push_back({.position = died->position,
                        .use_parts = false,
                        .reason = "killed the process: " + died->how});
      selection_.Skip(step_.nodes()[died->position], deadly.back().reason);
    }
    return MakeError(ErrorCode::kInternal, "too many operators kill the process");
  }

  // Runs the step under observation until nothing needs to be changed: operators that fail are
  // replaced by their parts or skipped, and those that ran other operators than recorded are
  // replaced by their parts.
  Result<Calibration> TryOut(const Announce& announce) {
    constexpr int kRounds = 16;
    Calibration found;
    for (int round = 0; round < kRounds; ++round) {
      ETUDE_ASSIGN_OR_RETURN(ReplayPlan plan, Plan());
      ETUDE_RETURN_IF_ERROR(Load(std::move(plan)));
      ETUDE_RETURN_IF_ERROR(ProvideAll(Nothing));
      ETUDE_RETURN_IF_ERROR(memory_.NoteContent());
      const auto observations = runner_.RunObserved(
          [&](size_t op) { announce(step_.position(runner_.plan().ops[op].node)); });
      announce(UINT32_MAX);
      std::vector<TrialVerdict> verdicts;
      const auto& ops = runner_.plan().ops;
      for (size_t i = 0; i < ops.size(); ++i) {
        const NodeId node = ops[i].node;
        const uint32_t position = step_.position(node);
        if (!observations[i].failure.empty()) {
          const bool parts = UseParts(node);
          if (!parts) selection_.Skip(node, observations[i].failure);
          verdicts.push_back({position, parts, parts ? "" : observations[i].failure});
        } else if (devices_.same_kind() && !bound_.at(node).is_collective() &&
                   observations[i].operators != Recorded(node) && UseParts(node)) {
          verdicts.push_back({position, true, ""});
        }
      }
      if (verdicts.empty()) {
        for (size_t i = 0; i < ops.size(); ++i) {
          if (observations[i].wrong_shape) found.coerced.push_back(step_.position(ops[i].node));
        }
        ETUDE_ASSIGN_OR_RETURN(const auto changed, memory_.Changed());
        for (const StorageVersion version : changed) found.changed.push_back(version.value());
        AddCollectives(found.changed);
        return found;
      }
      found.rounds.push_back(std::move(verdicts));
    }
    return MakeError(ErrorCode::kInternal, "the replay did not settle");
  }

  // Adds the memory of collectives, which the trial leaves out: they may change it.
  void AddCollectives(std::vector<uint32_t>& changed) const {
    for (const PlannedOp& op : runner_.plan().ops) {
      if (!bound_.at(op.node).is_collective()) continue;
      for (const DataFlow::Use& use : flow_.inputs(op.node)) {
        if (use.version) changed.push_back(use.version.value());
      }
    }
  }

  // Brings the selection to where the trial's was at its end.
  Status Follow(const Calibration& found) {
    for (const auto& round : found.rounds) {
      ETUDE_RETURN_IF_ERROR(Plan());
      for (const TrialVerdict& verdict : round) {
        if (verdict.position >= step_.nodes().size()) continue;
        const NodeId node = step_.nodes()[verdict.position];
        if (!verdict.use_parts) {
          selection_.Skip(node, verdict.reason);
        } else if (!UseParts(node)) {
          return MakeError(ErrorCode::kInternal, "the trial run cannot be followed");
        }
      }
    }
    ETUDE_ASSIGN_OR_RETURN(ReplayPlan plan, Plan());
    return Load(std::move(plan));
  }

  static std::vector<StorageVersion> Versions(const std::vector<uint32_t>& numbers) {
    std::vector<StorageVersion> versions;
    versions.reserve(numbers.size());
    for (const uint32_t number : numbers) versions.emplace_back(number);
    return versions;
  }

  Status Adopt(const Calibration& found) {
    const auto& ops = runner_.plan().ops;
    coerce_.assign(ops.size(), false);
    for (size_t i = 0; i < ops.size(); ++i) {
      coerce_[i] = std::ranges::binary_search(found.coerced, step_.position(ops[i].node));
      report_.assumed_values += bound_.at(ops[i].node).assumed_values();
    }
    report_.coerced = static_cast<int64_t>(found.coerced.size());
    const Nanos begin = CpuTimeWithChildren();
    ETUDE_RETURN_IF_ERROR(memory_.KeepOriginals(Versions(found.changed)));
    report_.fill = report_.fill + (CpuTimeWithChildren() - begin);
    return {};
  }

  // The recorded program's gaps around the operators that were chosen. Compiled code and operators
  // that are skipped leave none; what several ranks wait for is not told from other gaps.
  Status FindGaps() {
    if (options_.group != nullptr) return {};
    std::vector<NodeId> operators;
    for (const PlannedOp& op : runner_.plan().ops) operators.push_back(op.node);
    std::vector<NodeId> others(step_.compiled_code().begin(), step_.compiled_code().end());
    for (const auto& skipped : selection_.skipped()) others.push_back(skipped.node);
    const std::unordered_set<NodeId> chosen(selection_.top().begin(), selection_.top().end());
    for (const NodeId node : step_.top_operators()) {
      if (!chosen.contains(node)) others.push_back(node);
    }
    gaps_ = FindHostGaps(step_, operators, others, [&](NodeId node) { return Duration(node); });
    if (!gaps_) {
      if (options_.gaps == GapMode::kNone) return {};
      return BadInput("--gaps recorded: the trace does not say when the operators of the step ran");
    }
    const Nanos recorded = Duration(step_.mark()).value_or(Nanos{});
    if (options_.original_step && *options_.original_step < recorded) {
      report_.gap_scale =
          static_cast<double>(options_.original_step->count) / static_cast<double>(recorded.count);
    }
    const auto scale = [&](Nanos& gap) {
      gap = Nanos{static_cast<int64_t>(static_cast<double>(gap.count) * report_.gap_scale)};
    };
    for (Nanos& gap : gaps_->before) scale(gap);
    scale(gaps_->after);
    report_.gaps_passed = options_.gaps == GapMode::kRecorded;
    report_.gaps = gaps_->total();
    return {};
  }

  // Operators that ran while `node` did, as recorded.
  OperatorCounts Recorded(NodeId node) const {
    OperatorCounts counts;
    const uint32_t begin = step_.position(node);
    for (uint32_t i = begin; i <= step_.last_inside(begin); ++i) {
      const NodeId inner = step_.nodes()[i];
      if (!IsOperator(trace_, inner) || (i != begin && !IsInside(i, begin))) continue;
      ++counts[std::string(OperatorNameOf(trace_, inner))];
    }
    return counts;
  }
  bool IsInside(uint32_t position, uint32_t outer) const {
    NodeId node = step_.enclosing_operator(position);
    while (node && step_.position(node) > outer) {
      node = step_.enclosing_operator(step_.position(node));
    }
    return node && step_.position(node) == outer;
  }

  void Describe() {
    report_.device = devices_.target();
    report_.torch_version = TORCH_VERSION;
    report_.rank = trace_.info().rank;
    report_.threads = static_cast<int>(options_.threads);
    report_.seed = options_.seed;
    report_.operators = static_cast<int64_t>(selection_.top().size() + CompiledCodeLeft().size());
    report_.operators_replayed = selection_.replayed_count();
    report_.calls = static_cast<int64_t>(runner_.plan().ops.size());
    report_.part = {.label = options_.label, .only = options_.only, .skip = options_.skip};
    report_.stats = trace_.stats();
    if (step_.mark()) report_.recorded_step = Duration(step_.mark());
    report_.operator_share = OperatorShare();
    report_.outside_bytes = memory_.bytes();
    report_.copied_bytes = memory_.copied_bytes();
    report_.peak_bytes = runner_.plan().peak_bytes;
    DescribeSkipped();
    OperatorCounts replaced;
    for (const NodeId node : selection_.replaced()) {
      ++replaced[std::string(FullOperatorName(SchemaOf(trace_, node)))];
    }
    for (const auto& [name, count] : replaced) report_.replaced_by_parts.push_back({name, count});
  }

  // The share of the recorded step during which a topmost operator ran, on whatever thread.
  std::optional<double> OperatorShare() const {
    const NodeId mark = step_.mark();
    if (!mark || !trace_.start(mark) || Duration(mark).value_or(Nanos{}).count <= 0) {
      return std::nullopt;
    }
    const Nanos begin = *trace_.start(mark);
    const Nanos end = begin + *Duration(mark);
    std::vector<std::pair<Nanos, Nanos>> spans;
    for (const NodeId node : step_.top_operators()) {
      const auto start = trace_.start(node);
      const auto duration = Duration(node);
      if (!start || !duration) return std::nullopt;
      spans.emplace_back(*start, *start + *duration);
    }
    std::ranges::sort(spans);
    Nanos covered;
    Nanos reached = begin;
    for (const auto& [from, to] : spans) {
      const Nanos until = std::min(to, end);
      if (until <= reached) continue;
      covered = covered + (until - std::max(from, reached));
      reached = until;
    }
    return static_cast<double>(covered.count) / static_cast<double>((end - begin).count);
  }

  // Compiled code counts unless only some operators do.
  std::span<const NodeId> CompiledCodeLeft() const {
    return options_.only.empty() ? step_.compiled_code() : std::span<const NodeId>();
  }

  // The duration of a label without that of the operators in it.
  std::optional<Nanos> OwnDuration(NodeId label) const {
    std::optional<Nanos> own = Duration(label);
    if (trace_.info().exclusive_durations) return own;
    const uint32_t begin = step_.position(label);
    for (const NodeId node : step_.top_operators()) {
      const uint32_t position = step_.position(node);
      if (position <= begin || position > step_.last_inside(begin)) continue;
      NodeId above = trace_.parent(node);
      uint32_t below = position;
      while (above && above != label && step_.position(above) < below) {
        below = step_.position(above);
        above = trace_.parent(above);
      }
      const auto duration = Duration(node);
      if (above != label || !own) continue;
      own = duration ? std::optional(std::max(Nanos{}, *own - *duration)) : std::nullopt;
    }
    return own;
  }

  void DescribeSkipped() {
    Nanos total;
    bool known = true;
    for (const NodeId node : selection_.top()) {
      const auto duration = Duration(node);
      known &= duration.has_value();
      total = total + duration.value_or(Nanos{});
    }
    const auto compiled = CompiledCodeLeft();
    for (const NodeId node : compiled) {
      const auto duration = OwnDuration(node);
      known &= duration.has_value();
      total = total + duration.value_or(Nanos{});
    }
    known &= total.count > 0;
    std::map<std::pair<std::string, std::string>, SkippedOperators> rows;
    double skipped_share = 0;
    const auto add = [&](std::string_view op, NodeId node, const std::string& reason,
                         std::optional<Nanos> duration) {
      SkippedOperators& row = rows[{std::string(op), reason}];
      row.op = op;
      row.schema = SchemaOf(trace_, node);
      row.reason = reason;
      ++row.count;
      if (!known) return;
      const double share =
          static_cast<double>(duration.value_or(Nanos{}).count) / static_cast<double>(total.count);
      row.time_share = row.time_share.value_or(0) + share;
      skipped_share += share;
    };
    for (const auto& skipped : selection_.skipped()) {
      add(OperatorNameOf(trace_, skipped.node), skipped.node, skipped.reason,
          Duration(skipped.node));
    }
    for (const NodeId node : compiled) {
      add(CompiledCode(trace_.name(node)), node,
          "compiled code: what it runs besides operators is not in the trace", OwnDuration(node));
    }
    for (auto& [key, row] : rows) report_.skipped.push_back(std::move(row));
    if (known) report_.time_coverage = std::max(0.0, 1.0 - skipped_share);
  }

  const Trace& trace_;
  ReplayOptions options_;
  const RunContext& context_;
  RecordedStep step_;
  DataFlow flow_;
  DeviceMap devices_;
  OperatorBinder binder_;
  OperatorSelection selection_;
  OutsideMemory memory_;
  StepRunner runner_;
  std::vector<FillRule> rules_;
  std::unordered_map<NodeId, BoundOperator> bound_;
  std::vector<bool> coerce_;
  std::optional<HostGaps> gaps_;
  // What the machine could give before anything was made, 0 if it does not say. Later it does not
  // tell: what the trial frees may stay with the process.
  int64_t free_at_start_ = 0;
  ReplayReport report_;

  friend class Replayer;
};

namespace {

tl::unexpected<Error> LibtorchError(const std::exception& error) {
  return MakeError(ErrorCode::kInternal, std::string("libtorch: ") + error.what());
}

}  // namespace

Replayer::Replayer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Replayer::Replayer(Replayer&&) noexcept = default;
Replayer& Replayer::operator=(Replayer&&) noexcept = default;
Replayer::~Replayer() = default;

Result<Replayer> Replayer::Make(const Trace& trace, const ReplayOptions& options,
                                const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(RecordedStep step,
                         RecordedStep::Select(trace, options.label, options.step));
  try {
    const DataFlow flow(step);
    ETUDE_ASSIGN_OR_RETURN(std::string device,
                           ChooseDevice(options.device, UsesDevice(step, flow)));
    if (options.group != nullptr && device != "cpu") {
      return MakeError(ErrorCode::kUnavailable,
                       "device '" + device +
                           "': several ranks are replayed on the CPU only, their "
                           "collectives with Gloo (there is no NCCL yet): --device cpu");
    }
    return Replayer(
        std::make_unique<Impl>(trace, options, context, std::move(step), std::move(device)));
  } catch (const std::exception& error) {
    return LibtorchError(error);
  }
}

Result<Replayer> Replayer::Prepare(const Trace& trace, const ReplayOptions& options,
                                   const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Make(trace, options, context));
  try {
    ETUDE_RETURN_IF_ERROR(replayer.impl_->SetUp());
    return replayer;
  } catch (const std::exception& error) {
    return LibtorchError(error);
  }
}

Result<std::optional<Calibration>> Replayer::TryOut(const Trace& trace,
                                                    const ReplayOptions& options,
                                                    const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Make(trace, options, context));
  try {
    return replayer.impl_->Trial();
  } catch (const std::exception& error) {
    return LibtorchError(error);
  }
}

Result<StepSample> Replayer::RunStep(GapMode gaps) { return impl_->RunStep(gaps); }
bool Replayer::knows_gaps() const { return impl_->knows_gaps(); }
Status Replayer::Record() { return impl_->Record(); }
const ReplayReport& Replayer::report() const { return impl_->report(); }

namespace {

double MeanFaults(const std::vector<StepSample>& samples) {
  int64_t faults = 0;
  for (const StepSample& sample : samples) faults += sample.counts.minor_faults;
  return static_cast<double>(faults) / static_cast<double>(samples.size());
}

// The figure that was not asked for, of half as many steps.
Status MeasureOtherMode(Replayer& replayer, const ReplayOptions& options, ReplayReport& report) {
  const bool passed = options.gaps == GapMode::kRecorded;
  (passed ? report.with_gaps : report.without_gaps) = report.replay;
  if (!replayer.knows_gaps()) return {};
  std::vector<StepSample> samples;
  for (int64_t i = 0; i < (options.iterations + 1) / 2; ++i) {
    ETUDE_ASSIGN_OR_RETURN(const StepSample sample,
                           replayer.RunStep(passed ? GapMode::kNone : GapMode::kRecorded));
    samples.push_back(sample);
  }
  (passed ? report.without_gaps : report.with_gaps) = SummariseSteps(samples);
  return {};
}

}  // namespace

Result<ReplayReport> Replay(const Trace& trace, const ReplayOptions& options,
                            const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Replayer::Prepare(trace, options, context));
  for (int64_t i = 0; i < options.warmup; ++i) {
    context.Progress("warm-up steps", static_cast<uint64_t>(i),
                     static_cast<uint64_t>(options.warmup));
    ETUDE_RETURN_IF_ERROR(replayer.RunStep(options.gaps));
  }
  std::vector<StepSample> samples;
  for (int64_t i = 0; i < options.iterations; ++i) {
    ETUDE_ASSIGN_OR_RETURN(const StepSample sample, replayer.RunStep(options.gaps));
    samples.push_back(sample);
    context.Progress("timed steps", static_cast<uint64_t>(i + 1),
                     static_cast<uint64_t>(options.iterations));
  }
  ETUDE_RETURN_IF_ERROR(replayer.Record());
  replayer.impl_->CheckValues();
  ReplayReport report = replayer.report();
  report.warmup = options.warmup;
  if (samples.empty()) return report;
  report.replay = SummariseSteps(samples);
  report.minor_faults = MeanFaults(samples);
  ETUDE_RETURN_IF_ERROR(MeasureOtherMode(replayer, options, report));
  return report;
}

}  // namespace etude
