#pragma once

#include <optional>
#include <string>

#include "src/base/run_context.h"
#include "src/trace/trace.h"

namespace etude {

// How much longer than the program's the recorded steps of `trace` took, where that is enough to
// count and the job.json beside the file at `path` knows it; "" else. What recording itself takes
// is in the times of PyTorch's observer and profiler; the native recorder takes its own out.
std::string RecordingCostNote(const Trace& trace, const std::string& path,
                              std::optional<int64_t> rank, const RunContext& context);

}  // namespace etude
