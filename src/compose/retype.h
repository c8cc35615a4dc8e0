#pragma once

#include <cstdint>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/trace/words/enums.h"

namespace etude {

// Whether programs may use the one in the place of the other: floating-point types of a size of
// their own, which networks are trained in.
bool IsNetworkType(DType dtype);

struct Retyped {
  Trace trace;
  int64_t changed = 0;  // nodes
};

// The trace with tensors of type `to` wherever it has those of type `from`, and with arguments that
// name the one naming the other; but sums that attention keeps for its backward pass have the type
// in which it adds, float32 where the elements are smaller. How long that takes is not known: the
// nodes that change have no durations, nor have their callers, labels among these, and what devices
// do for them.
Result<Retyped> RetypeTrace(const Trace& trace, DType from, DType to, const Limits& limits);

}  // namespace etude
