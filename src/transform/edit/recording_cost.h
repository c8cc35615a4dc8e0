#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "src/base/container/intervals.h"
#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Cost of recording on the host, by this model: each recorded operator and label costs the same
// time, half at its begin and half at its end. A large operator thus loses the cost of its callees.
// docs/models/recording_cost.md.
struct WithoutCost {
  Trace trace;
  Nanos taken;      // total of all steps
  Nanos per_event;  // per operator or label
  uint64_t events = 0;
};

// Returns `trace` without that cost: times are shifted so that the mean of `steps` becomes `step`.
// The time between two events shrinks by at most nine tenths. nullopt if the steps took no longer
// than that, and for a trace with device work, whose time recording does not lengthen.
Result<std::optional<WithoutCost>> TakeOutRecordingCost(const Trace& trace,
                                                        std::span<const Interval> steps, Nanos step,
                                                        const Limits& limits);

}  // namespace etude
