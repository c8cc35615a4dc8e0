#include "src/trace/stats.h"

namespace etude {

const std::array<StatInfo, kStatCount>& StatTable() {
  using enum Severity;
  static constexpr std::array<StatInfo, kStatCount> kTable = {{
      {Stat::kTruncated, "truncated", kError, "the file ended before its document did"},
      {Stat::kRepairedEscape, "repaired_escape", kWarning, "invalid JSON escapes were repaired"},
      {Stat::kRepairedName, "repaired_name", kWarning,
       "names with quotation marks that are not escaped were repaired"},
      {Stat::kRepairedComma, "repaired_comma", kWarning, "missing or surplus commas were repaired"},
      {Stat::kRepairedUtf8, "repaired_utf8", kWarning, "invalid UTF-8 was replaced by U+FFFD"},
      {Stat::kNonFiniteNumber, "non_finite_number", kWarning,
       "NaN, Infinity or out-of-range numbers"},
      {Stat::kRoundedTime, "rounded_time", kWarning, "times finer than a nanosecond were rounded"},
      {Stat::kMalformedElement, "malformed_element", kError,
       "nodes or events without the "
       "required fields were skipped"},
      {Stat::kUnknownValue, "unknown_value", kNote, "arguments of unforeseen form, kept as text"},
      {Stat::kDuplicateId, "duplicate_id", kError, "several nodes share one id"},
      {Stat::kRenumberedId, "renumbered_id", kWarning,
       "nodes shared ids before they were given new ones: who named such an id may mean another"},
      {Stat::kDanglingParent, "dangling_parent", kError, "parents that are not in the file"},
      {Stat::kDanglingDependency, "dangling_dependency", kError,
       "dependencies on nodes that are not in the file"},
      {Stat::kParentCycle, "parent_cycle", kError, "nodes that are their own ancestors"},
      {Stat::kDependencyCycle, "dependency_cycle", kError,
       "nodes on a cycle of dependencies, or waiting for one"},
      {Stat::kUnknownDuration, "unknown_duration", kNote, "nodes whose duration is not known"},
      {Stat::kNegativeDuration, "negative_duration", kError,
       "durations below zero, treated as unknown"},
      {Stat::kMissingMetadata, "missing_metadata", kWarning, "the trace has no GlobalMetadata"},
      {Stat::kMisplacedMetadata, "misplaced_metadata", kWarning,
       "GlobalMetadata behind nodes, or more than once"},
      {Stat::kUnknownTime, "unknown_time", kWarning,
       "times that cannot be true, treated as unknown"},
      {Stat::kTrailingData, "trailing_data", kWarning, "bytes after the document's end"},
      {Stat::kSkippedEvent, "skipped_event", kNote,
       "events that carry no work: flow arrows, counters, names"},
      {Stat::kUnlinkedHost, "unlinked_host", kNote,
       "host nodes without an event in the device trace"},
      {Stat::kUnlinkedDeviceOp, "unlinked_device_op", kWarning,
       "device operations whose host operator was not found"},
      {Stat::kUnlinkedEvent, "unlinked_event", kNote,
       "host events of the device trace without a host node"},
      {Stat::kAmbiguousLink, "ambiguous_link", kWarning, "several candidates; the first was taken"},
      {Stat::kFallbackLink, "fallback_link", kNote, "linked by name and order: ids were missing"},
      {Stat::kCallByOrder, "call_by_order", kNote,
       "communication kernels whose call was found by order: ids were missing"},
      {Stat::kClippedTime, "clipped_time", kWarning, "times that the output format cannot hold"},
      {Stat::kSharedNumber, "shared_number", kNote,
       "correlations and External ids that several processes had in common: each process got its "
       "own"},
  }};
  return kTable;
}

}  // namespace etude
