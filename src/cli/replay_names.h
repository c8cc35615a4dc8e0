#pragma once

#include "src/base/result.h"
#include "src/torch/replay_options.h"
#include "src/trace/trace.h"

namespace etude {

// kUsage if --label, --only or --skip name what the step does not have: mistakes, for which there
// are suggestions.
Status CheckNames(const Trace& trace, const ReplayOptions& options);

}  // namespace etude
