#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Result for a host node. Each node has exactly one.
enum class HostLink : uint8_t {
  kRoot,        // process, thread or (unmatched) metadata: has no event
  kRfId,        // by record function id
  kExternalId,  // the record function id is an event's External id, as in some versions
  kAligned,     // ids were missing: by names and order on its thread
  kNoEvent,     // no event has its id, or none is at its place
  kOtherName,   // the event with its id has another name
  kTaken,       // another node has the same id and the event
};
inline constexpr size_t kHostLinkCount = static_cast<size_t>(HostLink::kTaken) + 1;

struct HostLinkInfo {
  std::string_view name;  // stable: used in --json
  std::string_view help;
};
const HostLinkInfo& Info(HostLink link);
constexpr bool IsMatched(HostLink link) {
  return link == HostLink::kRfId || link == HostLink::kExternalId || link == HostLink::kAligned;
}

// Returns true for events of the device trace that may match a host node: operators and labels.
bool IsHostEvent(const Trace& device, NodeId event);

struct HostMatch {
  std::vector<HostLink> links;  // by host node
  std::vector<NodeId> events;   // by host node; kNone if not matched
  std::vector<NodeId> nodes;    // by event; kNone if not matched
  // Nodes with several candidate events; the first in file order was used.
  uint64_t ambiguous = 0;
};

// Finds the event of each node of `host`. Matches by record function id. If the device trace has
// none, or they are not unique or name other operators, matches by External ids if these are the
// same numbers. Otherwise matches thread by thread, by the longest common subsequence of names,
// restricted to pairs that nest alike. Id 0 means none. O(n log n).
HostMatch MatchHost(const Trace& host, const Trace& device);

}  // namespace etude
