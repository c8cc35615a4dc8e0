#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/linker.h"

namespace etude::compat {

// The synchronisations on the critical path of the first profiler step, as Holistic Trace Analysis
// 0.5.0 finds them for chakra_trace_link: the graph of operations, runtime calls and kernels with
// times in whole microseconds, and one of its longest paths. None where the analysis gives up on
// the trace, which chakra_trace_link only logs; kBadInput where it stops chakra_trace_link.
//
// Where two events fall into one microsecond, the original's order depends on the sorting
// instructions of the processor; here they come in the order of the file.
Result<std::vector<SyncDep>> FindCriticalSyncDeps(const DeviceTrace& trace,
                                                  const std::string& name);

}  // namespace etude::compat
