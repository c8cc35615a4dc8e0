#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace etude {

// Things met while reading, linking or converting that a user should know of. Each is counted per
// trace; StatTable() says what it means.
enum class Stat : uint8_t {
  kTruncated,           // the file ended before its document did
  kRepairedEscape,      // invalid JSON escape or control byte repaired
  kRepairedName,        // a name whose quotation marks were not escaped was repaired
  kRepairedComma,       // a missing comma was put in, or one too many left out
  kRepairedUtf8,        // invalid UTF-8 or lone surrogate replaced
  kNonFiniteNumber,     // bare NaN or Infinity, or a number out of range
  kRoundedTime,         // a time finer than a nanosecond was rounded
  kMalformedElement,    // a node or event that could not be read was skipped
  kUnknownValue,        // an argument of unforeseen form was kept as raw text
  kDuplicateId,         // two nodes with one id; references mean the first
  kRenumberedId,        // two nodes had one id, before all were given new ones
  kDanglingParent,      // a parent that is not in the file
  kDanglingDependency,  // a dependency on a node that is not in the file
  kParentCycle,         // a node is its own ancestor
  kDependencyCycle,     // nodes on, or waiting for, a cycle of dependencies
  kUnknownDuration,     // a node that should have a duration but has none
  kNegativeDuration,    // a duration below zero; kept as unknown
  kMissingMetadata,     // a Chakra trace without GlobalMetadata
  kMisplacedMetadata,   // GlobalMetadata behind nodes, or a second one
  kUnknownTime,         // a time that cannot be true, far from all others; kept as unknown
  kTrailingData,        // bytes after the document's end were ignored
  kSkippedEvent,        // device trace events that carry no work (flow arrows, counters, names)
  kUnlinkedHost,        // host nodes without a matching device trace event
  kUnlinkedDeviceOp,    // device operations whose host operator was not found
  kUnlinkedEvent,       // host events of the device trace without a host node
  kAmbiguousLink,       // several candidates matched; the first in file order was taken
  kFallbackLink,        // matched by name and order because ids were missing
  kCallByOrder,         // communication whose call was found by order: ids were missing
  kClippedTime,         // a time that does not fit the output format was clipped or rounded
  kSharedNumber,        // a correlation or External id of one of several processes was renumbered
};

inline constexpr size_t kStatCount = static_cast<size_t>(Stat::kSharedNumber) + 1;

enum class Severity : uint8_t {
  kNote,     // nothing is lost
  kWarning,  // something is lost, or was repaired
  kError,    // the trace breaks its own rules: `validate` says no
};

struct StatInfo {
  Stat stat;
  std::string_view name;  // stable: appears in --json
  Severity severity;
  std::string_view help;
};

// One row per Stat, in the order of the enumeration.
const std::array<StatInfo, kStatCount>& StatTable();
inline const StatInfo& Info(Stat stat) { return StatTable()[static_cast<size_t>(stat)]; }

// Counts per Stat.
class Stats {
 public:
  void Count(Stat stat, uint64_t times = 1) { counts_[static_cast<size_t>(stat)] += times; }
  uint64_t operator[](Stat stat) const { return counts_[static_cast<size_t>(stat)]; }
  void Add(const Stats& other) {
    for (size_t i = 0; i < kStatCount; ++i) counts_[i] += other.counts_[i];
  }

 private:
  std::array<uint64_t, kStatCount> counts_{};
};

}  // namespace etude
