#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/trace/trace.h"

namespace etude {

// The mark around step `index` of a recording.
std::string RecordedStepMark(int64_t index);

// Calls `run` once for each step while Etude's own recorder records this process, and reads what it
// wrote. `run` puts RecordedStepMark around what is the step. The recording is kept in `path`,
// or nowhere if that is "": then a recording that cannot be written is no error but a warning and
// nullopt, and the steps run all the same, because other ranks run theirs.
Result<std::optional<Trace>> RecordSteps(int64_t steps,
                                         const std::function<Status(int64_t index)>& run,
                                         const std::string& path, const RunContext& context);

}  // namespace etude
