#pragma once

#include <optional>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// How much a copy or fill of a device moves, which files of the profiler's say with the event;
// nullopt if the trace does not.
std::optional<Bytes> CopiedBytes(const Trace& trace, NodeId node);

}  // namespace etude
