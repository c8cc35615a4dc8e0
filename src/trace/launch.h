#pragma once

#include <vector>

#include "src/trace/trace.h"

namespace etude {

// By node: for device nodes the host node that started them, as far as the trace tells: the nearest
// host node above, else the runtime call of the same correlation; kNone else and for host nodes.
// O(nodes).
std::vector<NodeId> FindLaunchers(const Trace& trace);

}  // namespace etude
