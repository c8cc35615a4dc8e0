#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace etude {

// Conditions counted while reading, linking or converting a trace, for the user. StatTable()
// describes each.
enum class Stat : uint8_t {
  kTruncated,           // the file ended before its document did
  kRepairedEscape,      // repaired an invalid JSON escape or control byte
  kRepairedName,        // repaired a name with unescaped quotation marks
  kRepairedComma,       // added a missing comma or removed an extra one
  kRepairedUtf8,        // replaced invalid UTF-8 or a lone surrogate
  kNonFiniteNumber,     // bare NaN or Infinity, or a number out of range
  kRoundedTime,         // rounded a time finer than a nanosecond
  kMalformedElement,    // skipped an unreadable node or event
  kUnknownValue,        // kept an argument of unexpected form as raw text
  kDuplicateId,         // two nodes with one id; references mean the first
  kRenumberedId,        // two nodes had one id before all were renumbered
  kDanglingParent,      // a parent that is missing from the file
  kDanglingDependency,  // a dependency on a node that is missing from the file
  kParentCycle,         // a node is its own ancestor
  kDependencyCycle,     // nodes on a cycle of dependencies, or waiting for one
  kUnknownDuration,     // missing duration of a node that should have one
  kNegativeDuration,    // negative duration; kept as unknown
  kMissingMetadata,     // Chakra trace without GlobalMetadata
  kMisplacedMetadata,   // GlobalMetadata after nodes, or a second one
  kUnknownTime,         // an implausible time, far from all others; kept as unknown
  kTrailingData,        // ignored bytes after the document's end
  kSkippedEvent,        // device trace events without work (flow arrows, counters, names)
  kUnlinkedHost,        // host nodes without a matching device trace event
  kUnlinkedDeviceOp,    // device operations without a known host operator
  kUnlinkedEvent,       // host events of the device trace without a host node
  kAmbiguousLink,       // several candidates matched; the first in file order was used
  kFallbackLink,        // matched by name and order, because ids were missing
  kCallByOrder,         // communication whose call was found by order: ids were missing
  kClippedTime,         // clipped or rounded a time that does not fit the output format
  kSharedNumber,        // renumbered a correlation or External id of one of several processes
};

inline constexpr size_t kStatCount = static_cast<size_t>(Stat::kSharedNumber) + 1;

enum class Severity : uint8_t {
  kNote,     // nothing is lost
  kWarning,  // something was lost or repaired
  kError,    // the trace is invalid: `validate` fails
};

struct StatInfo {
  Stat stat;
  std::string_view name;  // stable: used in --json
  Severity severity;
  std::string_view help;
};

// Returns one row per Stat, in the order of the enumeration.
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
