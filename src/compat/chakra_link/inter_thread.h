#pragma once

#include <cstdint>
#include <vector>

#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/groups.h"

namespace etude::compat {

// For each of `cpu_ops`, which are events in order of time, the rf id of the operation of another
// thread that its group waits for, as chakra_trace_link sees it; 0: none. `threads` are the numbers
// of the threads in the order in which they appear.
std::vector<int64_t> FindInterThreadDeps(const DeviceTrace& trace,
                                         const std::vector<uint32_t>& cpu_ops,
                                         const Groups& by_thread,
                                         const std::vector<uint32_t>& threads);

}  // namespace etude::compat
