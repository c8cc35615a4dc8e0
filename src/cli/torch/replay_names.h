#pragma once

#include "src/base/result.h"
#include "src/torch/replay_options.h"
#include "src/trace/trace.h"

namespace etude {

// Returns kUsage with suggestions if --label, --only, --skip, --stand-in or --scale name something
// that the step lacks. Names of --scale may occur on another rank.
Status CheckNames(const Trace& trace, const ReplayOptions& options);

}  // namespace etude
