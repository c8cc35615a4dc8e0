#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/run_context.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// The time of a step of a recorded job.
struct RecordingCost {
  size_t steps = 0;               // in the trace
  std::optional<Nanos> recorded;  // as the trace has it: the median of these
  std::optional<Nanos> program;   // without recording: the median of `program_steps`
  size_t program_steps = 0;
};

// Of `trace` and the job.json beside the file at `path`, as far as they know.
RecordingCost FindRecordingCost(const Trace& trace, const std::string& path,
                                std::optional<int64_t> rank, const RunContext& context);

// How much longer than the program's the recorded steps took, where that is enough to
// count and known; "" else. What recording itself takes is in the times of PyTorch's observer and
// profiler; the native recorder takes its own out.
std::string RecordingCostNote(const RecordingCost& cost);

}  // namespace etude
