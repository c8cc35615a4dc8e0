#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/result.h"
#include "src/synth/text/text_model.h"
#include "src/trace/trace.h"

namespace etude {

struct TextWorkloadOptions {
  int64_t ranks = 1;
  int64_t passes = 1;
};

struct TextWorkload {
  Trace trace;           // equal for all ranks except info().rank, which is unset
  uint64_t ignored = 0;  // communications that the parallelism does not use
};

// Makes the trace of a model (docs/commands/generate.md): a node for each computation that takes
// time and each communication that moves something, with the dependencies that its parallelism
// needs. kBadInput for a number of layers other than announced, negative figures, and unknown
// collectives.
Result<TextWorkload> MakeTextWorkload(const TextModel& model, const TextWorkloadOptions& options);

}  // namespace etude
