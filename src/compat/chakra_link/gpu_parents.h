#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/compat/chakra_link/device_trace.h"

namespace etude::compat {

// For each of `gpu_ops`, which are events in order of time, the number of the external id of the
// operation that chakra_trace_link takes for its launcher; kNoRow: none, it is left out.
// `cpu_ops` are events in order of time. kBadInput if a correlation id launches twice.
Result<std::vector<uint32_t>> FindGpuParents(const DeviceTrace& trace,
                                             const std::vector<uint32_t>& cpu_ops,
                                             const std::vector<uint32_t>& gpu_ops,
                                             const std::string& name);

}  // namespace etude::compat
