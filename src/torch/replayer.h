#pragma once

#include <memory>
#include <optional>

#include "src/analysis/time/host_gaps.h"
#include "src/base/machine/process_usage.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/base/units.h"
#include "src/replay/calibration.h"
#include "src/replay/replay_report.h"
#include "src/standalone/program.h"
#include "src/torch/replay_options.h"
#include "src/trace/trace.h"

namespace etude {

// What one replayed step took, and the memory in use at its end and at its peak.
struct StepSample {
  Nanos wall;
  Nanos cpu;
  PassedGaps gaps;  // for the recorded program's: the idle ones of wall time only
  ProcessCounts counts;
  std::optional<Bytes> resident;
  std::optional<Bytes> peak_resident;
};

// A recorded step, set up to be run again: every top-level operator through PyTorch's dispatcher,
// reading what its producer wrote. Not thread-safe. The trace must outlive it.
class Replayer {
 public:
  // kBadInput if the trace holds no step that could be replayed or asks for more memory than
  // allowed, kUnavailable if the device is not there or has no collectives. Operators that cannot
  // be run are no error: they are in report().
  static Result<Replayer> Prepare(const Trace& trace, const ReplayOptions& options,
                                  const RunContext& context);

  // Tries out the step, in a child process: for those who replay several steps in one process,
  // because after the first step there are threads, which a child has not. nullopt where the device
  // does not need it.
  static Result<std::optional<Calibration>> TryOut(const Trace& trace, const ReplayOptions& options,
                                                   const RunContext& context);

  Replayer(Replayer&&) noexcept;
  Replayer& operator=(Replayer&&) noexcept;
  ~Replayer();

  // Warms up and times as many steps as the options say.
  Result<ReplayReport> Measure();
  // Runs the step once, as soon as all ranks do. kBadInput if gaps are asked for and not known.
  Result<StepSample> RunStep(GapMode gaps);

  // Runs a few steps more and records them: report() then says which of the recorded kernels ran,
  // where a recording could be made.
  Status FindKernels();

  // The step as a program that needs neither the trace nor Etude; with the heap as it is when steps
  // have run. `keep_names`: as MakeProgram takes it.
  Result<Program> ToProgram(bool keep_names) const;

  // All but the times, which the caller collects.
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
