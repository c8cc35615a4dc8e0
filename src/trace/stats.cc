#include "src/trace/stats.h"

namespace etude {

const std::array<StatInfo, kStatCount>& StatTable() {
  using enum Severity;
  static constexpr std::array<StatInfo, kStatCount> kTable = {{
      {Stat::kTruncated, "truncated", kError, "the file is truncated"},
      {Stat::kRepairedEscape, "repaired_escape", kWarning, "invalid JSON escapes were repaired"},
      {Stat::kRepairedName, "repaired_name", kWarning,
       "names with unescaped quotation marks were repaired"},
      {Stat::kRepairedComma, "repaired_comma", kWarning, "missing or surplus commas were repaired"},
      {Stat::kRepairedUtf8, "repaired_utf8", kWarning, "invalid UTF-8 was replaced by U+FFFD"},
      {Stat::kNonFiniteNumber, "non_finite_number", kWarning,
       "NaN, Infinity or out-of-range numbers"},
      {Stat::kRoundedTime, "rounded_time", kWarning, "times finer than a nanosecond were rounded"},
      {Stat::kMalformedElement, "malformed_element", kError,
       "nodes or events without the "
       "required fields were skipped"},
      {Stat::kUnknownValue, "unknown_value", kNote, "arguments in an unknown form, kept as text"},
      {Stat::kDuplicateId, "duplicate_id", kError, "several nodes share one id"},
      {Stat::kRenumberedId, "renumbered_id", kWarning,
       "nodes with shared ids were renumbered: references to them may be wrong"},
      {Stat::kDanglingParent, "dangling_parent", kError, "parents missing in the file"},
      {Stat::kDanglingDependency, "dangling_dependency", kError,
       "dependencies on nodes missing in the file"},
      {Stat::kParentCycle, "parent_cycle", kError, "nodes that are their own ancestors"},
      {Stat::kDependencyCycle, "dependency_cycle", kError,
       "nodes on a cycle of dependencies, or waiting for one"},
      {Stat::kUnknownDuration, "unknown_duration", kNote, "nodes with unknown duration"},
      {Stat::kNegativeDuration, "negative_duration", kError,
       "durations below zero, treated as unknown"},
      {Stat::kMissingMetadata, "missing_metadata", kWarning, "missing GlobalMetadata"},
      {Stat::kMisplacedMetadata, "misplaced_metadata", kWarning,
       "GlobalMetadata after nodes, or more than once"},
      {Stat::kUnknownTime, "unknown_time", kWarning, "invalid times, treated as unknown"},
      {Stat::kTrailingData, "trailing_data", kWarning, "bytes after the end of the document"},
      {Stat::kSkippedEvent, "skipped_event", kNote,
       "events without work: flow arrows, counters, names"},
      {Stat::kUnlinkedHost, "unlinked_host", kNote,
       "host nodes without an event in the device trace"},
      {Stat::kUnlinkedDeviceOp, "unlinked_device_op", kWarning,
       "device operations without a host operator"},
      {Stat::kUnlinkedEvent, "unlinked_event", kNote,
       "host events of the device trace without a host node"},
      {Stat::kAmbiguousLink, "ambiguous_link", kWarning, "several candidates; the first was used"},
      {Stat::kFallbackLink, "fallback_link", kNote,
       "linked by name and order because ids were missing"},
      {Stat::kCallByOrder, "call_by_order", kNote,
       "communication kernels matched with calls by order because ids were missing"},
      {Stat::kClippedTime, "clipped_time", kWarning,
       "times that the output format cannot represent"},
      {Stat::kSharedNumber, "shared_number", kNote,
       "correlation ids and External ids shared by several processes, made unique per process"},
  }};
  return kTable;
}

}  // namespace etude
