#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/process_usage.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/base/units.h"
#include "src/torch/calibration.h"
#include "src/torch/rank_group.h"
#include "src/torch/replay_report.h"
#include "src/trace/trace.h"

namespace etude {

// What a replay does where the recorded program was busy with no operator.
enum class GapMode : uint8_t { kNone, kRecorded };

struct ReplayOptions {
  std::string device;  // "": the GPU if the trace used one and there is one, else CPU
  int64_t warmup = 5;
  int64_t iterations = 20;
  int64_t threads = 1;
  uint64_t seed = 0;
  size_t step = 0;                // of several recorded ones
  std::string label;              // replay only what is below the first node named so
  std::vector<std::string> skip;  // operators not to run: base or full names
  std::vector<std::string> only;  // if not empty: run only these
  std::string recording;          // where to keep the recording of the replay; "": nowhere
  // The other ranks, each of which replays its own trace with the same numbers of steps; null: the
  // rank is replayed alone. Not owned.
  RankGroup* group = nullptr;
  GapMode gaps = GapMode::kNone;
  // Wall time of the step without recording. Recorded gaps are shortened by what recording made the
  // step longer; nullopt: they are taken as they are.
  std::optional<Nanos> original_step;
  // Bytes from which on the program's C library mapped blocks, where that is known.
  std::optional<int64_t> mmap_threshold;
  // What trying out the step has found earlier; null: it is tried out. Not owned.
  const Calibration* calibration = nullptr;
  // Recorded time of each node, where the trace itself has none; may be empty.
  std::vector<std::optional<Nanos>> durations;
};

// What one replayed step took, and the memory in use at its end and at its peak.
struct StepSample {
  Nanos wall;
  Nanos cpu;
  Nanos gaps;  // of both: passed with nothing, for the recorded program's gaps
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

  // Runs the step once, as soon as all ranks do. kBadInput if gaps are asked for and not known.
  Result<StepSample> RunStep(GapMode gaps);
  bool knows_gaps() const;
  // Records the replay as the original was recorded, and puts into the report how they compare:
  // kernels and times of operators.
  Status Record();

  // All but the times, which the caller collects.
  const ReplayReport& report() const;

 private:
  friend Result<ReplayReport> Replay(const Trace&, const ReplayOptions&, const RunContext&);
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
