#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// What became of an event of the device trace. Each event is in exactly one of these.
enum class EventLink : uint8_t {
  kHostNode,          // stands for a host node
  kHostUnlinked,      // operator or label without a host node
  kLaunch,            // runtime call that launched device work
  kRuntime,           // runtime call that launched nothing that was recorded
  kByCorrelation,     // device work: by its launch, and the operator around that
  kByExternalId,      // device work: by External id alone
  kOrphanNoLaunch,    // device work whose launch was not recorded, nor an External id
  kOrphanNoOperator,  // device work launched where no operator of the host trace was running
  kOutside,           // device work launched before or after what the host trace covers
  kSync,              // waits of streams and events: they order others and are no work
  kDeviceLabel,       // labels on the device's time line
  kOther,             // the profiler's own spans, and categories we do not know
};
inline constexpr size_t kEventLinkCount = static_cast<size_t>(EventLink::kOther) + 1;

struct EventLinkInfo {
  std::string_view name;  // stable: appears in --json
  std::string_view help;
};
const EventLinkInfo& Info(EventLink link);

struct DeviceMatch {
  std::vector<EventLink> links;   // by event
  std::vector<NodeId> launches;   // by event: of device work, its runtime call; else kNone
  std::vector<NodeId> operators;  // by event: of device work, the host event to which it belongs
  // By event: of calls of the runtime, the innermost host event around them that stands for a node.
  std::vector<NodeId> callers;
  // Device work for which several runtime calls have its correlation; the first one was taken.
  uint64_t ambiguous = 0;
};

// Finds for each piece of work on the device the runtime call that launched it, and the innermost
// host event around that call that stands for a host node: `nodes` has the host node of each event,
// or kNone. O(n log n).
DeviceMatch MatchDevice(const Trace& device, const std::vector<NodeId>& nodes);

}  // namespace etude
