#include "src/torch/replayer.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/record_function.h>

#include "src/analysis/time/time_summary.h"
#include "src/base/container/guarded.h"
#include "src/base/machine/process_usage.h"
#include "src/torch/device_clock.h"
#include "src/torch/group/comm_calls.h"
#include "src/torch/memory/heap_faults.h"
#include "src/torch/memory/program_heap.h"
#include "src/torch/recorded_replay.h"
#include "src/torch/recorder/monotonic_time.h"
#include "src/torch/replay_description.h"
#include "src/torch/replay_device.h"
#include "src/torch/replay_gaps.h"
#include "src/torch/replay_recording.h"
#include "src/torch/replayed_step.h"
#include "src/torch/standalone_program.h"
#include "src/torch/step_trial.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

std::optional<double> MedianFaults(const std::vector<StepSample>& samples) {
  std::vector<int64_t> faults(samples.size());
  std::ranges::transform(samples, faults.begin(),
                         [](const StepSample& sample) { return sample.counts.minor_faults; });
  return Median(std::move(faults));
}

}  // namespace

class Replayer::Impl {
 public:
  Impl(const Trace& trace, const ReplayOptions& options, const RunContext& context,
       RecordedStep step, std::string device)
      : step_(trace, options, context, std::move(step), std::move(device)) {}
  ~Impl() {
    if (group() != nullptr) group()->SetStatus(nullptr);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<std::optional<Calibration>> Trial() {
    if (!step_.devices().target_is_cpu()) return std::nullopt;
    ETUDE_RETURN_IF_ERROR(step_.Choose());
    ETUDE_ASSIGN_OR_RETURN(Calibration found, TryOutInChild(step_, report_.trial));
    return found;
  }

  Status SetUp() {
    const Nanos begin = CpuTimeWithChildren();
    ETUDE_RETURN_IF_ERROR(step_.Choose());
    ETUDE_RETURN_IF_ERROR(Calibrate());
    ETUDE_RETURN_IF_ERROR(FindGaps());
    ETUDE_RETURN_IF_ERROR(FindPace());
    // After the trial: a group has threads, which a forked child lacks.
    if (group() != nullptr) {
      ETUDE_RETURN_IF_ERROR(group()->Connect(CallsOf(step_), SkippedCalls(step_)));
      group()->SetStatus([this] { return step_.runner().Progress(); });
    }
    report_.setup = CpuTimeWithChildren() - begin - report_.trial - step_.fill_time();
    const Nanos first_begin = CpuTimeWithChildren();
    const Nanos filled = step_.fill_time();
    ETUDE_RETURN_IF_ERROR(RunFirstStepWithRoom());
    if (const auto threshold = step_.options().mmap_threshold) RaiseMapThreshold(*threshold);
    report_.first_step = CpuTimeWithChildren() - first_begin - (step_.fill_time() - filled);
    report_.fill = step_.fill_time();
    DescribeReplay(step_, report_);
    for (SkippedOperators& row : report_.skipped) {
      row.stand_in = gaps_ ? Scaled(row.stand_in, gaps_->scale) : Nanos{};
    }
    if (report_.part.is_whole()) {
      report_.recorded_memory_growth = step_.options().memory_growth;
      report_.recorded_faults = step_.options().minor_faults;
      heap_faults_.Want(report_.recorded_faults);
    }
    return {};
  }

  Result<StepSample> RunStep(GapMode mode) {
    const Nanos cpu = CpuTime();
    ETUDE_RETURN_IF_ERROR(BeginStep());
    const Nanos cost = CpuTime() - cpu;
    begin_cost_ = std::min(begin_cost_.value_or(cost), cost);
    return TimeStep(mode, [this] { return Explained(step_.runner().Finish()); });
  }

  // Runs warm-up and timed steps, then records the replay like the original.
  Result<ReplayReport> Measure() {
    const ReplayOptions& options = step_.options();
    const RunContext& context = step_.context();
    for (int64_t i = 0; i < options.warmup; ++i) {
      context.Progress("warm-up steps", static_cast<uint64_t>(i),
                       static_cast<uint64_t>(options.warmup));
      ETUDE_RETURN_IF_ERROR(RunStep(options.gaps));
    }
    const std::optional<Nanos> stolen = StolenTime();
    const Nanos begin = MonotonicTime();
    ETUDE_ASSIGN_OR_RETURN(const std::vector<StepSample> samples,
                           RunSteps(options.iterations, options.gaps));
    report_.stolen_share = ShareStolen(stolen, StolenTime(), MonotonicTime() - begin);
    ETUDE_RETURN_IF_ERROR(FindKernels());
    report_.non_finite = step_.memory().CountNonFinite();
    report_.denormal = step_.memory().CountDenormal();
    ReplayReport report = report_;
    report.warmup = options.warmup;
    if (samples.empty()) return report;
    report.replay = Summarised(samples);
    report.minor_faults = MedianFaults(samples);
    report.memory_growth = MemoryGrowth(samples);
    ETUDE_RETURN_IF_ERROR(MeasureOtherMode(report));
    return report;
  }

  Status FindKernels() {
    return CompareRecording(
        step_, [&](int64_t index) { return RunMarked(index); }, report_);
  }

  Result<Program> ToProgram(bool keep_names) const {
    ETUDE_ASSIGN_OR_RETURN(Program program, MakeProgram(step_, coerce_, keep_names));
    program.heap = {.map_threshold = MapThreshold(),
                    .keeps_freed = heap_faults_.keeps_freed(),
                    .given_back = heap_faults_.given_back()};
    if (gaps_) program.gaps = GapsOf(gaps_->gaps);
    program.coverage = {.operators = static_cast<int64_t>(report_.operators),
                        .operators_run = static_cast<int64_t>(report_.operators_replayed),
                        .time = report_.time_coverage};
    return program;
  }
  const ReplayReport& report() const { return report_; }

  std::vector<NodeId> operators() const {
    std::vector<NodeId> nodes;
    for (const PlannedOp& op : step_.plan().ops) nodes.push_back(op.node);
    return nodes;
  }
  Result<std::vector<Nanos>> TimeOperators() {
    std::vector<Nanos> times;
    ETUDE_RETURN_IF_ERROR(BeginStep());
    ETUDE_RETURN_IF_ERROR(step_.runner().RunTimed(coerce_, times));
    ETUDE_RETURN_IF_ERROR(step_.runner().Finish());
    return times;
  }
  Status RepeatOperators(std::vector<OperatorRepetition>& repetitions) {
    if (!step_.devices().target_is_cpu()) {
      return Unavailable("operators are repeated on the CPU only");
    }
    ETUDE_RETURN_IF_ERROR(BeginStep());
    ETUDE_RETURN_IF_ERROR(step_.runner().RunRepeated(coerce_, repetitions));
    return step_.runner().Finish();
  }

 private:
  // Returns the maximum memory that a step added to the memory in use before the first one.
  std::optional<Bytes> MemoryGrowth(const std::vector<StepSample>& samples) const {
    if (!report_.resident_before_steps) return std::nullopt;
    const int64_t level = report_.resident_before_steps->count + step_.memory().copied_bytes();
    std::optional<Bytes> growth;
    for (const StepSample& sample : samples) {
      if (!sample.peak_resident) return std::nullopt;
      growth = Bytes{std::max(growth.value_or(Bytes{}).count, sample.peak_resident->count - level)};
    }
    return growth;
  }

  static std::optional<double> ShareStolen(std::optional<Nanos> before, std::optional<Nanos> after,
                                           Nanos passed) {
    if (!before || !after || passed <= Nanos{}) return std::nullopt;
    return static_cast<double>((*after - *before).count) / static_cast<double>(passed.count);
  }

  // Returns the gaps before each operator, and after the last.
  static std::vector<ProgramGap> GapsOf(const HostGaps& gaps) {
    std::vector<ProgramGap> all;
    const auto add = [&](Nanos gap) {
      const Nanos idle = all.size() < gaps.idle.size() ? gaps.idle[all.size()] : Nanos{};
      all.push_back({.idle = idle, .busy = gap - idle});
    };
    for (const Nanos gap : gaps.before) add(gap);
    add(gaps.after);
    return all;
  }

  // Times a step after BeginStep; includes `finish`.
  template <typename Finish>
  Result<StepSample> TimeStep(GapMode mode, Finish finish) {
    PeakResident peak;
    peak.Begin();
    const ProcessCounts counts = ProcessCounts::Now();
    const Nanos cpu = CpuTime();
    const Nanos wall = MonotonicTime();
    heap_faults_.BeforeStep();
    PassedGaps gaps;
    if (pace_) {
      const HostGaps* recorded = mode == GapMode::kRecorded ? &gaps_->gaps : nullptr;
      ETUDE_RETURN_IF_ERROR(
          Explained(step_.runner().RunStretched(coerce_, *pace_, recorded, gaps)));
    } else if (mode == GapMode::kRecorded) {
      ETUDE_RETURN_IF_ERROR(Explained(step_.runner().RunWithGaps(coerce_, gaps_->gaps, gaps)));
    } else {
      ETUDE_RETURN_IF_ERROR(Explained(step_.runner().Run(coerce_)));
    }
    ETUDE_RETURN_IF_ERROR(finish());
    const Nanos wall_end = MonotonicTime();
    const Nanos cpu_end = CpuTime();
    const ProcessCounts counts_end = ProcessCounts::Now();
    heap_faults_.AfterStep((counts_end - counts).minor_faults);
    report_.given_back_bytes = heap_faults_.given_back();
    return StepSample{.wall = Unstretched(wall_end - wall),
                      .cpu = cpu_end - cpu,
                      .gaps = gaps,
                      .counts = counts_end - counts,
                      .resident = ResidentBytes(),
                      .peak_resident = peak.bytes()};
  }

  // Returns whether the host begins the next step while a device is still busy, as a program does.
  // Disabled with other ranks, because a stopped one is detected when waiting for the device.
  bool RunsAhead() const {
    return (group() == nullptr || group()->is_alone()) &&
           DeviceClock::Works(c10::Device(step_.devices().target()));
  }

  // Runs `count` timed steps.
  Result<std::vector<StepSample>> RunSteps(int64_t count, GapMode mode) {
    const bool runs_ahead = RunsAhead();
    DeviceClock clock(c10::Device(step_.devices().target()));
    std::vector<StepSample> samples;
    for (int64_t i = 0; i < count; ++i) {
      ETUDE_ASSIGN_OR_RETURN(const StepSample sample,
                             runs_ahead ? RunAhead(mode, clock) : RunStep(mode));
      samples.push_back(sample);
      step_.context().Progress("timed steps", static_cast<uint64_t>(i + 1),
                               static_cast<uint64_t>(count));
    }
    if (!runs_ahead) return samples;
    ETUDE_RETURN_IF_ERROR(Explained(step_.runner().Finish()));
    const std::vector<Nanos> times = clock.Times();
    for (size_t i = 0; i < samples.size(); ++i) samples[i].wall = times[i];
    return samples;
  }

  // Submits a step to the device; the clock measures it. Of BeginStep, only the host's wait for the
  // device counts, because a program has to wait somewhere, too.
  Result<StepSample> RunAhead(GapMode mode, DeviceClock& clock) {
    const Nanos cpu = CpuTime();
    ETUDE_RETURN_IF_ERROR(BeginStep());
    const Nanos cost = CpuTime() - cpu;
    clock.Begin();
    ETUDE_ASSIGN_OR_RETURN(StepSample sample, TimeStep(mode, [&] {
                             clock.End();
                             return Status();
                           }));
    sample.cpu = sample.cpu + std::max(Nanos{}, cost - begin_cost_.value_or(cost));
    return sample;
  }

  RankGroup* group() const { return step_.options().group; }

  // On an emulated machine only wall times are meaningful.
  Nanos Unstretched(Nanos time) const {
    if (!pace_) return time;
    return TruncatedNanos(static_cast<double>(time.count) / step_.options().scale->slowdown());
  }
  StepTimes Summarised(const std::vector<StepSample>& samples) const {
    StepTimes times = SummariseSteps(samples);
    if (pace_) times.cpu.reset();
    return times;
  }

  // Measures the other gap mode with half as many steps.
  Status MeasureOtherMode(ReplayReport& report) {
    const ReplayOptions& options = step_.options();
    const bool passed = options.gaps == GapMode::kRecorded;
    (passed ? report.with_gaps : report.without_gaps) = report.replay;
    // Other ranks run these steps, too.
    if (!gaps_ && group() == nullptr) return {};
    const GapMode other = passed || !gaps_ ? GapMode::kNone : GapMode::kRecorded;
    ETUDE_ASSIGN_OR_RETURN(const std::vector<StepSample> samples,
                           RunSteps((options.iterations + 1) / 2, other));
    if (gaps_) (passed ? report.without_gaps : report.with_gaps) = Summarised(samples);
    return {};
  }

  Status RunMarked(int64_t index) {
    ETUDE_RETURN_IF_ERROR(BeginStep());
    const StepMark mark(index);
    heap_faults_.BeforeStep();
    return RunAtOnce();
  }
  // Runs a step without gaps to its end.
  Status RunAtOnce() {
    ETUDE_RETURN_IF_ERROR(Explained(step_.runner().Run(coerce_)));
    return Explained(step_.runner().Finish());
  }

  // Prepares a step outside of its time: restores memory and meets the other ranks.
  Status BeginStep() {
    ETUDE_RETURN_IF_ERROR(step_.memory().Restore());
    step_.Seed();
    if (group() == nullptr) return {};
    return Explained(group()->Meet(/*in_time=*/!step_.options().paced));
  }
  // Adds the other ranks' status to the error of a failed step.
  Status Explained(Status done) const {
    if (done || group() == nullptr) return done;
    return tl::unexpected<Error>(group()->Explain(std::move(done).error()));
  }
  Status MeetRanks() { return group() == nullptr ? Status() : group()->Meet(); }

  // Copies of memory on a device may occupy the room that the step needs: retries without them. Not
  // with other ranks, which would have to run an additional step.
  Status RunFirstStepWithRoom() {
    Status done = RunFirstStep();
    if (done || group() != nullptr || !step_.memory().keeps_on_device()) return done;
    step_.runner().Clear();
    ETUDE_RETURN_IF_ERROR(step_.memory().BringOriginalsHere());
    return RunFirstStep();
  }

  // Runs the step for the first time. As in a program's first step, the optimizer makes its state,
  // all at once, when it begins.
  Status RunFirstStep() {
    ETUDE_RETURN_IF_ERROR(step_.ProvideAllButState());
    const auto& outside = step_.plan().outside;
    const auto first = std::ranges::find_if(outside, &OutsideStorage::made_in_first_step);
    ETUDE_RETURN_IF_ERROR(MeetRanks());
    const std::optional<Bytes> resident = ResidentBytes();
    if (resident) {
      // Copies are not memory of the recorded program; they make the step repeatable.
      report_.resident_before_steps = Bytes{resident->count - step_.memory().copied_bytes()};
    }
    step_.Seed();
    if (first == outside.end()) return RunAtOnce();
    ETUDE_RETURN_IF_ERROR(Explained(step_.runner().RunWith(coerce_, [&](size_t op) -> Status {
      return op == first->first_use ? step_.ProvideAll() : Status();
    })));
    return Explained(step_.runner().Finish());
  }

  // Applies the result of an earlier or new trial. Devices whose driver does not survive a fork are
  // tried out in this process.
  Status Calibrate() {
    if (!step_.devices().target_is_cpu()) {
      const Nanos begin = CpuTimeWithChildren();
      ETUDE_ASSIGN_OR_RETURN(const Calibration found, TryOutHere(step_, [](uint32_t) {}));
      report_.trial = CpuTimeWithChildren() - begin - step_.fill_time();
      ETUDE_RETURN_IF_ERROR(step_.memory().Refill(Versions(found.changed)));
      return Adopt(found);
    }
    const Calibration* earlier = step_.options().calibration;
    if (earlier == nullptr) {
      ETUDE_ASSIGN_OR_RETURN(const Calibration found, TryOutInChild(step_, report_.trial));
      ETUDE_RETURN_IF_ERROR(FollowTrial(step_, found));
      return Adopt(found);
    }
    for (const TrialVerdict& verdict : earlier->deadly) {
      step_.Skip(step_.recorded().nodes()[verdict.position], verdict.reason);
    }
    ETUDE_RETURN_IF_ERROR(step_.PlanAndLoad());
    ETUDE_RETURN_IF_ERROR(step_.ProvideAllButState());
    ETUDE_RETURN_IF_ERROR(FollowTrial(step_, *earlier));
    return Adopt(*earlier);
  }

  Status Adopt(const Calibration& found) {
    const auto& ops = step_.plan().ops;
    coerce_.assign(ops.size(), false);
    for (size_t i = 0; i < ops.size(); ++i) {
      coerce_[i] =
          std::ranges::binary_search(found.coerced, step_.recorded().position(ops[i].node));
      report_.assumed_values += step_.bound(ops[i].node).assumed_values();
    }
    report_.coerced = static_cast<int64_t>(found.coerced.size());
    const Nanos begin = CpuTimeWithChildren();
    ETUDE_RETURN_IF_ERROR(step_.memory().KeepOriginals(Versions(found.changed)));
    step_.AddFillTime(CpuTimeWithChildren() - begin);
    return {};
  }

  Status FindGaps() {
    gaps_ = FindReplayGaps(step_);
    if (!gaps_) {
      if (step_.options().gaps == GapMode::kNone) return {};
      std::string which = "the operators of the step";
      for (const NodeId node : step_.selection().top()) {
        if (step_.times().duration(node)) continue;
        which += " (" + std::string(OperatorNameOf(step_.trace(), node)) + " for one)";
        break;
      }
      return BadInput("--gaps recorded: the trace has no times for " + which);
    }
    report_.gap_scale = gaps_->scale;
    report_.gaps_passed = step_.options().gaps == GapMode::kRecorded;
    report_.gaps = gaps_->gaps.total();
    report_.gap_waits = gaps_->gaps.waits;
    for (const Nanos idle : gaps_->gaps.idle) report_.gap_idle = report_.gap_idle + idle;
    return {};
  }

  // Determines the pace of an emulated machine.
  Status FindPace() {
    const ReplayOptions& options = step_.options();
    if (!options.scale) return {};
    const int64_t rank =
        group() == nullptr ? step_.trace().info().rank.value_or(0) : group()->rank();
    const double slowdown = options.scale->slowdown();
    const CommLog calls = CallsOf(step_);
    size_t call = 0;
    pace_.emplace().host = slowdown * options.scale->OfHost(rank);
    std::vector<ScaledOperator> operators;
    for (const PlannedOp& op : step_.plan().ops) {
      const BoundOperator& bound = step_.bound(op.node);
      const ScaledOperator scaled{.name = FullOperatorName(SchemaOf(step_.trace(), op.node)),
                                  .communicates = bound.communicates()};
      operators.push_back(scaled);
      const double factor = slowdown * options.scale->Of(scaled, rank);
      pace_->operators.push_back(factor);
      Nanos expected;
      if (bound.communicates() && group()->IsThere(bound.channel().group)) {
        expected = options.comm.TimeOf(SizeOf(calls, calls.calls[call]));
        if (expected == Nanos{} && factor != 1) {
          return BadInput("--scale: no communication in the trace has a duration");
        }
      }
      if (bound.communicates()) ++call;
      pace_->expected.push_back(expected);
    }
    report_.scale = options.scale->Text(operators);
    report_.slowdown = slowdown;
    return {};
  }

  ReplayedStep step_;
  std::vector<bool> coerce_;
  std::optional<StepPace> pace_;
  std::optional<ReplayGaps> gaps_;
  std::optional<Nanos> begin_cost_;  // CPU time of BeginStep with an idle device
  HeapFaults heap_faults_;
  ReplayReport report_;
};

namespace {

// Returns the result of `work`; exceptions of libtorch become errors.
template <typename Work>
auto OfLibtorch(const Work& work) -> decltype(work()) {
  return Guarded(work, [](const char* what) { return std::string("libtorch: ") + what; });
}

// Returns the device of one of several ranks: its own, unless a number was given.
Result<std::string> DeviceInGroup(const ReplayOptions& options, const std::string& device) {
  const RankGroup& group = *options.group;
  ETUDE_RETURN_IF_ERROR(group.CheckDevice(device));
  if (group.is_alone() || options.device.find(':') != std::string::npos) return device;
  return DeviceAt(device, {.number = group.local_rank(), .is_launched = group.is_launched()});
}

// Rejects options that asynchronous devices do not support.
Status CheckAsynchronous(const ReplayOptions& options, const std::string& device) {
  if (device == "cpu") return {};
  if (options.scale) {
    return Unavailable("device '" + device + "': --scale and --straggler require --device cpu");
  }
  const RankGroup* group = options.group;
  if (group != nullptr && !group->is_alone() && !group->is_launched() &&
      options.device.find(':') != std::string::npos) {
    return MakeError(ErrorCode::kUsage,
                     "--device " + options.device +
                         ": found a device number, expected a device without number such as cuda, "
                         "because each rank requires its own device");
  }
  return {};
}

}  // namespace

Replayer::Replayer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Replayer::Replayer(Replayer&&) noexcept = default;
Replayer& Replayer::operator=(Replayer&&) noexcept = default;
Replayer::~Replayer() = default;

Result<Replayer> Replayer::Make(const Trace& trace, const ReplayOptions& options,
                                const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(RecordedStep step, RecordedStep::Select(trace, options.label, options.step,
                                                                 options.compiled_kernels));
  return OfLibtorch([&]() -> Result<Replayer> {
    const DataFlow flow(step);
    ETUDE_ASSIGN_OR_RETURN(std::string device,
                           ChooseDevice(options.device, UsesDevice(step, flow)));
    ETUDE_RETURN_IF_ERROR(CheckTried(device, options.experimental));
    ETUDE_RETURN_IF_ERROR(CheckAsynchronous(options, device));
    if (options.group != nullptr) {
      ETUDE_ASSIGN_OR_RETURN(device, DeviceInGroup(options, device));
      options.group->UseDevice(device);
    }
    SetDevice(device);
    return Replayer(
        std::make_unique<Impl>(trace, options, context, std::move(step), std::move(device)));
  });
}

Result<Replayer> Replayer::Prepare(const Trace& trace, const ReplayOptions& options,
                                   const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Make(trace, options, context));
  ETUDE_RETURN_IF_ERROR(OfLibtorch([&] { return replayer.impl_->SetUp(); }));
  return replayer;
}

Result<std::optional<Calibration>> Replayer::TryOut(const Trace& trace,
                                                    const ReplayOptions& options,
                                                    const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Make(trace, options, context));
  return OfLibtorch([&] { return replayer.impl_->Trial(); });
}

Result<Program> Replayer::ToProgram(bool keep_names) const {
  return OfLibtorch([&] { return impl_->ToProgram(keep_names); });
}
Result<ReplayReport> Replayer::Measure() {
  return OfLibtorch([&] { return impl_->Measure(); });
}
Status Replayer::FindKernels() {
  return OfLibtorch([&] { return impl_->FindKernels(); });
}
Result<StepSample> Replayer::RunStep(GapMode gaps) {
  return OfLibtorch([&] { return impl_->RunStep(gaps); });
}
std::vector<NodeId> Replayer::operators() const { return impl_->operators(); }
Result<std::vector<Nanos>> Replayer::TimeOperators() {
  return OfLibtorch([&] { return impl_->TimeOperators(); });
}
Status Replayer::RepeatOperators(std::vector<OperatorRepetition>& repetitions) {
  return OfLibtorch([&] { return impl_->RepeatOperators(repetitions); });
}
const ReplayReport& Replayer::report() const { return impl_->report(); }

Result<ReplayReport> Replay(const Trace& trace, const ReplayOptions& options,
                            const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Replayer replayer, Replayer::Prepare(trace, options, context));
  return replayer.Measure();
}

}  // namespace etude
