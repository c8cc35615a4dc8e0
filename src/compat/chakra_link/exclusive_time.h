#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/groups.h"
#include "src/compat/python/py_number.h"

namespace etude::compat {

// For each of `cpu_ops`, which are events in order of time, its duration less what lies within it
// in its thread, with the rounding and the quirks of chakra_trace_link: an operation that begins
// with its caller and is shorter counts as coming before it. `by_thread` groups places in
// `cpu_ops`.
struct ExclusiveTimes {
  std::vector<PyNumber> values;         // by place in cpu_ops
  std::optional<uint32_t> negative_at;  // a place where the result is below zero: Chakra stops
};
ExclusiveTimes FindExclusiveTimes(const DeviceTrace& trace, const std::vector<uint32_t>& cpu_ops,
                                  const Groups& by_thread);

}  // namespace etude::compat
