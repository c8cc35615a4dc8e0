#pragma once

#include <cstdint>
#include <optional>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

struct RightNesting {
  Trace host;
  uint64_t moved = 0;  // nodes below another caller than in the trace
};

// Returns `host` with its nodes below the callers found by FindCallers, with times of `device`
// where PyTorch's observer is unreliable. A node with a missing caller is placed below the node
// that ran around it on its thread. nullopt if nothing changes, or if ids are not unique.
Result<std::optional<RightNesting>> SetNestingRight(const Trace& host, const Trace& device,
                                                    const Limits& limits);

}  // namespace etude
