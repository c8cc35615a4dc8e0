#pragma once

#include <cstdint>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// What devices did for one host node: kernels, copies, fills and communication below it and below
// no other host node.
struct LaunchedWork {
  uint64_t host = 0;  // the host node's source id
  Nanos time;         // of the device
};

// The same for all host nodes of a linked trace, in order of their ids; empty where the trace has
// no device work. What has no host node above it, or no time, is left out.
std::vector<LaunchedWork> FindLaunchedWork(const Trace& linked);

}  // namespace etude
