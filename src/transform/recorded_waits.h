#pragma once

#include <vector>

#include "src/trace/recorded_wait.h"
#include "src/trace/trace.h"

namespace etude {

// Who waited for whom in a device trace: calls for device work, streams for each other
// (sync_edges.h), threads for threads (thread_edges.h). A call that waits by its name, while
// nothing says for what, is taken to have waited for the last work that ended while it ran and had
// been launched before; the work launched next after a stream was told to wait, for the last work
// of other streams that ended between its launch and its beginning and had been launched before.
// Empty for traces of other formats, which have what linking found among their dependencies. O(n
// log n).
std::vector<RecordedWait> FindRecordedWaits(const Trace& trace);

}  // namespace etude
