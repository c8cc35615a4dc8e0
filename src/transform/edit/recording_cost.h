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

// What recording cost a program on the host, by this model: each operator and label that was
// recorded costs the same time, half of it where it begins and half where it ends. So large
// operators lose what small ones do. docs/models/recording_cost.md.
struct WithoutCost {
  Trace trace;
  Nanos taken;      // of all steps together
  Nanos per_event;  // of one operator or label
  uint64_t events = 0;
};

// `trace` without that cost: times move so that each of `steps` takes `step` in the mean. A stretch
// between two events loses at most nine tenths. nullopt where the steps took no longer, and of a
// trace in which a device works, whose time recording does not lengthen.
Result<std::optional<WithoutCost>> TakeOutRecordingCost(const Trace& trace,
                                                        std::span<const Interval> steps, Nanos step,
                                                        const Limits& limits);

}  // namespace etude
