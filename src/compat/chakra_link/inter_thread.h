#pragma once

#include <cstdint>
#include <vector>

#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/groups.h"

namespace etude::compat {

// Returns, for each of `cpu_ops` (events in order of time), the rf id of the operation of another
// thread that its group waits for, as determined by chakra_trace_link; 0: none. `threads`: thread
// numbers in order of first occurrence.
std::vector<int64_t> FindInterThreadDeps(const DeviceTrace& trace,
                                         const std::vector<uint32_t>& cpu_ops,
                                         const Groups& by_thread,
                                         const std::vector<uint32_t>& threads);

}  // namespace etude::compat
