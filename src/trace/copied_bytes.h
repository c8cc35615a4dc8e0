#pragma once

#include <optional>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

// Returns the size of a device's copy or fill, which some profilers record with the event; nullopt
// if not recorded.
std::optional<Bytes> CopiedBytes(const Trace& trace, NodeId node);

}  // namespace etude
