#pragma once

#include <cstdint>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/trace/words/enums.h"

namespace etude {

// Returns true for the floating-point types that networks are trained in, which may replace each
// other.
bool IsNetworkType(DType dtype);

struct Retyped {
  Trace trace;
  int64_t changed = 0;  // number of nodes
};

// Returns the trace with type `to` in place of `from` in tensors and in arguments that name a type.
// Exception: sums that attention keeps for its backward pass have its accumulation type, float32
// for smaller elements. The new times are unknown: changed nodes have no durations, nor do their
// callers, including labels, and their device work.
Result<Retyped> RetypeTrace(const Trace& trace, DType from, DType to, const Limits& limits);

}  // namespace etude
