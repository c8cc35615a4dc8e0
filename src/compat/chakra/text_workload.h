#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/result.h"
#include "src/compat/chakra/text_model.h"
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

// Makes the trace of a model (docs/commands/generate.md): a node per computation with a non-zero
// time and per communication with a non-zero size, with the dependencies of its parallelism.
// kBadInput for a wrong number of layers, negative figures, and unknown collectives.
Result<TextWorkload> MakeTextWorkload(const compat::TextModel& model,
                                      const TextWorkloadOptions& options);

}  // namespace etude
