#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/analysis/time/host_gaps.h"
#include "src/base/machine/process_usage.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/base/units.h"
#include "src/replay/calibration.h"
#include "src/replay/replay_report.h"
#include "src/standalone/program.h"
#include "src/torch/operator_repetition.h"
#include "src/torch/replay_options.h"
#include "src/trace/trace.h"

namespace etude {

// Times and memory of one replayed step.
struct StepSample {
  Nanos wall;
  Nanos cpu;
  PassedGaps gaps;  // gaps passed; idle ones count as wall time only
  ProcessCounts counts;
  std::optional<Bytes> resident;
  std::optional<Bytes> peak_resident;
};

// A recorded step, ready to run repeatedly: every top-level operator goes through PyTorch's
// dispatcher and reads what its producer wrote. Not thread-safe. The trace must outlive it.
class Replayer {
 public:
  // Prepares a replay. kBadInput if the trace contains no replayable step or needs more memory than
  // allowed, kUnavailable if the device is missing or lacks collectives. Operators that cannot run
  // are not errors; they are listed in report().
  static Result<Replayer> Prepare(const Trace& trace, const ReplayOptions& options,
                                  const RunContext& context);

  // Tries out the step in a child process. For replays of several steps in one process, because
  // after the first step there are threads, which a child lacks. nullopt if the device does not
  // need it.
  static Result<std::optional<Calibration>> TryOut(const Trace& trace, const ReplayOptions& options,
                                                   const RunContext& context);

  Replayer(Replayer&&) noexcept;
  Replayer& operator=(Replayer&&) noexcept;
  ~Replayer();

  // Runs warm-up and timed steps as configured.
  Result<ReplayReport> Measure();
  // Runs the step once, when all ranks are ready. kBadInput for unknown gaps.
  Result<StepSample> RunStep(GapMode gaps);

  // Returns the operators that a step runs, in order.
  std::vector<NodeId> operators() const;
  // Runs the step once, and returns the time of each operator's call.
  Result<std::vector<Nanos>> TimeOperators();
  // Runs the step once, and repeats each operator before it runs. `repetitions`: by operator.
  // kUnavailable unless the step runs on the CPU.
  Status RepeatOperators(std::vector<OperatorRepetition>& repetitions);

  // Runs and records a few more steps. If a recording could be made, report() then lists which
  // recorded kernels ran.
  Status FindKernels();

  // Returns the step as a program that needs neither the trace nor Etude, with the heap's state
  // after steps have run. `keep_names`: as in MakeProgram.
  Result<Program> ToProgram(bool keep_names) const;

  // Returns the report without times, which the caller collects.
  const ReplayReport& report() const;

 private:
  class Impl;
  explicit Replayer(std::unique_ptr<Impl> impl);
  static Result<Replayer> Make(const Trace& trace, const ReplayOptions& options,
                               const RunContext& context);

  std::unique_ptr<Impl> impl_;
};

// Prepares, warms up, and times the replay of `trace`.
Result<ReplayReport> Replay(const Trace& trace, const ReplayOptions& options,
                            const RunContext& context);

}  // namespace etude
