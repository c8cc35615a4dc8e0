#pragma once

#include <cstdint>

// The part of Perfetto's protobuf schema (perfetto.protos) that reader and writer use: numbers of
// fields by message (docs/formats/perfetto.md).
namespace etude::perfetto {

enum class TraceField : uint32_t { kPacket = 1 };

enum class PacketField : uint32_t {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kIncrementalStateCleared = 41,
  kCompressedPackets = 50,
  kTimestampClock = 58,
  kDefaults = 59,
  kTrackDescriptor = 60,
};

inline constexpr uint32_t kStateCleared = 1;  // of sequence_flags
inline constexpr uint32_t kNeedsState = 2;

enum class SnapshotField : uint32_t { kClock = 1 };
enum class ClockField : uint32_t { kId = 1, kTime = 2, kIncremental = 3, kUnit = 4 };

enum class DefaultsField : uint32_t { kTrackEvent = 11, kTimestampClock = 58 };
enum class EventDefaultsField : uint32_t { kTrack = 11 };

enum class TrackField : uint32_t {
  kUuid = 1,
  kName = 2,
  kProcess = 3,
  kThread = 4,
  kParent = 5,
  kCounter = 8,
  kStaticName = 10,
  kChildOrdering = 11,
  kSiblingRank = 12,
};
inline constexpr int32_t kExplicitOrder = 3;  // of child_ordering

enum class ProcessField : uint32_t { kPid = 1, kName = 6 };
enum class ThreadField : uint32_t { kPid = 1, kTid = 2, kName = 5 };
enum class CounterField : uint32_t { kUnit = 3, kUnitName = 6 };
inline constexpr int32_t kUnitCount = 2;
inline constexpr int32_t kUnitBytes = 3;

enum class EventField : uint32_t {
  kCategoryIds = 3,
  kAnnotations = 4,
  kType = 9,
  kNameId = 10,
  kTrack = 11,
  kCategories = 22,
  kName = 23,
  kCounterValue = 30,
  kFlows = 47,
  kLastFlows = 48,
};
enum class EventType : int32_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

enum class AnnotationField : uint32_t {
  kNameId = 1,
  kBool = 2,
  kUint = 3,
  kInt = 4,
  kDouble = 5,
  kText = 6,
  kPointer = 7,
  kJson = 9,
  kName = 10,
  kEntries = 11,
  kElements = 12,
  kTextId = 17,
};

enum class InternedField : uint32_t {
  kCategories = 1,
  kEventNames = 2,
  kAnnotationNames = 3,
  kAnnotationTexts = 29,
};
// Fields of EventCategory, EventName, DebugAnnotationName and InternedString.
enum class InternedEntry : uint32_t { kId = 1, kText = 2 };

}  // namespace etude::perfetto
