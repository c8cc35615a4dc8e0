#pragma once

#include <cstdint>
#include <optional>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

struct RightNesting {
  Trace host;
  uint64_t moved = 0;  // nodes below another caller than the trace said
};

// `host` with its nodes below the callers that FindCallers tells, by the times of `device` where
// PyTorch's observer was disturbed. A node whose caller is not in the trace goes below the node
// that ran around it on its thread. nullopt if nothing is to be moved, or ids are not unique.
Result<std::optional<RightNesting>> SetNestingRight(const Trace& host, const Trace& device,
                                                    const Limits& limits);

}  // namespace etude
