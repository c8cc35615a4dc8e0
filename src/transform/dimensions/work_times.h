#pragma once

#include <cstdint>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

struct TimedStep {
  Trace trace;
  std::vector<bool> is_retimed;  // by node
  uint64_t retimed = 0;
};

// Returns `edited`, which has the nodes and times of `recorded` but other sizes of tensors, with
// times by the work of the operators (OperatorCost): operations of matrix products, convolutions
// and attention, bytes of all others.
//
//     time = fixed + (recorded time - fixed) * work / recorded work
//
// `fixed` is the median time of recorded work on at most 4 KiB; shorter work keeps its time. Work
// on a device has that of the operator that launched it. docs/models/what_if.md.
Result<TimedStep> WithTimesByWork(const Trace& recorded, const Trace& edited, const Limits& limits);

}  // namespace etude
