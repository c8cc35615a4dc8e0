#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/run_context.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Step time of a recorded job, with and without recording.
struct RecordingCost {
  size_t steps = 0;               // in the trace
  std::optional<Nanos> recorded;  // median in the trace
  std::optional<Nanos> program;   // without recording: median of `program_steps` steps
  size_t program_steps = 0;
  // Cores of a rank's computations: less than 1 if the machine had fewer cores than ranks.
  double core_share = 1;
};

// Finds the step times in `trace` and in the job.json beside the file at `path`, as far as known.
RecordingCost FindRecordingCost(const Trace& trace, const std::string& path,
                                std::optional<int64_t> rank, const RunContext& context);

// Returns a note on how much longer the recorded steps took than the program's; "" if this is
// unknown or negligible. The overhead of PyTorch's observer and profiler is part of the recorded
// times; the native recorder subtracts its own.
std::string RecordingCostNote(const RecordingCost& cost);

}  // namespace etude
