#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/linker.h"

namespace etude::compat {

// Finds the synchronisations on the critical path of the first profiler step, like Holistic Trace
// Analysis 0.5.0 for chakra_trace_link: the graph of operations, runtime calls and kernels with
// times in whole microseconds, and one of its longest paths. Empty where the analysis gives up on
// the trace, which chakra_trace_link only logs; kBadInput where it stops chakra_trace_link.
//
// For two events in the same microsecond the original's order depends on the processor's sorting
// instructions; here they are in file order.
Result<std::vector<SyncDep>> FindCriticalSyncDeps(const DeviceTrace& trace,
                                                  const std::string& name);

}  // namespace etude::compat
