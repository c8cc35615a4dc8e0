#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Result for an event of the device trace. Each event has exactly one.
enum class EventLink : uint8_t {
  kHostNode,          // matched with a host node
  kHostUnlinked,      // operator or label without a host node
  kLaunch,            // runtime call that launched device work
  kRuntime,           // runtime call without recorded work
  kByCorrelation,     // device work: by its launch, and the operator around that
  kByExternalId,      // device work: by External id alone
  kOrphanNoLaunch,    // device work without a recorded launch or External id
  kOrphanNoOperator,  // device work launched while no operator of the host trace was running
  kOutside,           // device work launched before or after the time of the host trace
  kSync,              // waits of streams and events: they order others and are not work
  kDeviceLabel,       // labels on the device's timeline
  kOther,             // the profiler's own spans, and unknown categories
};
inline constexpr size_t kEventLinkCount = static_cast<size_t>(EventLink::kOther) + 1;

struct EventLinkInfo {
  std::string_view name;  // stable: used in --json
  std::string_view help;
};
const EventLinkInfo& Info(EventLink link);

struct DeviceMatch {
  std::vector<EventLink> links;   // by event
  std::vector<NodeId> launches;   // by event: runtime call of device work; else kNone
  std::vector<NodeId> operators;  // by event: host event that device work belongs to
  // By event: innermost matched host event around a runtime call.
  std::vector<NodeId> callers;
  // Device work with several runtime calls of its correlation; the first call was used.
  uint64_t ambiguous = 0;
};

// Finds, for each piece of device work, the runtime call that launched it and the innermost matched
// host event around that call. `nodes` has the host node of each event, or kNone. O(n log n).
DeviceMatch MatchDevice(const Trace& device, const std::vector<NodeId>& nodes);

}  // namespace etude
