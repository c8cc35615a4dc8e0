#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/groups.h"
#include "src/compat/python/py_number.h"

namespace etude::compat {

// Computes the exclusive duration of each of `cpu_ops` (events in order of time): its duration
// without nested operations of its thread, with the rounding and the defects of chakra_trace_link.
// An operation that begins together with its caller and is shorter counts as preceding it.
// `by_thread` groups indices in `cpu_ops`.
struct ExclusiveTimes {
  std::vector<PyNumber> values;         // by index in cpu_ops
  std::optional<uint32_t> negative_at;  // index of a negative result, where Chakra stops
};
ExclusiveTimes FindExclusiveTimes(const DeviceTrace& trace, const std::vector<uint32_t>& cpu_ops,
                                  const Groups& by_thread);

}  // namespace etude::compat
