#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// A piece of device work, a kernel, copy, fill or communication, and the host node above it.
struct LaunchedWork {
  uint64_t host = 0;  // the host node's source id
  LaneId lane;        // of the linked trace: the stream
  std::optional<Nanos> start;
  Nanos time;
};

// All of a linked trace, in order of the ids of host nodes; empty where the trace has no device
// work. What has no host node above it, or no duration, is left out.
std::vector<LaunchedWork> FindLaunchedWork(const Trace& linked);

}  // namespace etude
