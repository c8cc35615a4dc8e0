#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Piece of device work (kernel, copy, fill or communication) and the host node above it.
struct LaunchedWork {
  uint64_t host = 0;  // source id of the host node
  LaneId lane;        // stream in the linked trace
  std::optional<Nanos> start;
  Nanos time;
};

// Returns the device work of a linked trace, ordered by ids of host nodes; empty without device
// work. Work without a host node above it, or without a duration, is left out.
std::vector<LaunchedWork> FindLaunchedWork(const Trace& linked);

}  // namespace etude
