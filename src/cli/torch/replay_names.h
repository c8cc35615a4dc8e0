#pragma once

#include "src/base/result.h"
#include "src/torch/replay_options.h"
#include "src/trace/trace.h"

namespace etude {

// kUsage if --label, --only, --skip, --stand-in or --scale name what the step does not have:
// mistakes, for which there are suggestions. What --scale names may be on another rank of several.
Status CheckNames(const Trace& trace, const ReplayOptions& options);

}  // namespace etude
