#pragma once

#include <string_view>

#include "src/trace/trace.h"
#include "src/trace/words/enums.h"

namespace etude {

// Name of the profiler's instant events of allocators (profile_memory=True): nodes of kind
// kMetadata with the event's arguments as extras.
inline constexpr std::string_view kMemoryEvent = "[memory]";
// Returns true if `node` is such an event, which is not a call.
inline bool IsMemoryEvent(const Trace& trace, NodeId node) {
  return trace.kind(node) == NodeKind::kMetadata && trace.name(node) == kMemoryEvent;
}

}  // namespace etude
