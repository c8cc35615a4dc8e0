#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/compat/chakra_link/device_trace.h"

namespace etude::compat {

// Returns, for each of `gpu_ops`, the index of the external id of the operation that
// chakra_trace_link considers its launcher; kNoRow: none, the operation is skipped. `gpu_ops` and
// `cpu_ops` are events in order of time. kBadInput if a correlation id has two launches.
Result<std::vector<uint32_t>> FindGpuParents(const DeviceTrace& trace,
                                             const std::vector<uint32_t>& cpu_ops,
                                             const std::vector<uint32_t>& gpu_ops,
                                             const std::string& name);

}  // namespace etude::compat
