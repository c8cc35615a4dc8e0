#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// What became of a host node. Each node is in exactly one of these.
enum class HostLink : uint8_t {
  kRoot,        // process, thread or (unmatched) metadata: stands for no event
  kRfId,        // its record function id is an event's
  kExternalId,  // its record function id is an event's External id, as some versions have it
  kAligned,     // ids were missing: by names and order on its thread
  kNoEvent,     // no event has its id, or none stands where it should
  kOtherName,   // the event with its id has another name
  kTaken,       // another node has the same id and took the event
};
inline constexpr size_t kHostLinkCount = static_cast<size_t>(HostLink::kTaken) + 1;

struct HostLinkInfo {
  std::string_view name;  // stable: appears in --json
  std::string_view help;
};
const HostLinkInfo& Info(HostLink link);
constexpr bool IsMatched(HostLink link) {
  return link == HostLink::kRfId || link == HostLink::kExternalId || link == HostLink::kAligned;
}

// True for events of the device trace that may stand for a host node: operators and labels.
bool IsHostEvent(const Trace& device, NodeId event);

struct HostMatch {
  std::vector<HostLink> links;  // by host node
  std::vector<NodeId> events;   // by host node; kNone if not matched
  std::vector<NodeId> nodes;    // by event; kNone if not matched
  // Nodes for which several events would do; the first one in the file was taken.
  uint64_t ambiguous = 0;
};

// Finds the event that stands for each node of `host`: by the record function id; where the device
// trace has none, or they are not unique or name other operators, by External ids if these are the
// same numbers; else thread by thread by the longest common subsequence of names, of which only
// what nests alike counts. 0 is no id. O(n log n).
HostMatch MatchHost(const Trace& host, const Trace& device);

}  // namespace etude
