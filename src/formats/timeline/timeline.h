#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

// Layout of traces in timeline viewers: processes with tracks, slices on them, arrows between
// slices, and counters. Used by the writers of Chrome's and Perfetto's formats.
namespace etude {

// A quantity over time. A value holds until the next one.
struct Counter {
  enum class Unit : uint8_t { kCount, kBytes, kBytesPerSecond };

  std::string name;
  Unit unit = Unit::kCount;
  std::vector<std::pair<Nanos, int64_t>> points;  // ascending in time
};

// One trace on a timeline, as a process of its own. Refers to the trace.
struct TimelinePart {
  const Trace* trace = nullptr;
  std::string name;               // "rank 3"
  int64_t pid = 0;                // distinct among the parts
  Nanos offset;                   // subtracted from all times
  std::vector<Counter> counters;  // with the trace's own times
};

// Layout of a trace. Slices of a track are nested or disjoint.
struct TimelinePlan {
  enum class Arrow : uint8_t { kControl, kData, kSync, kLaunch };

  struct Slice {
    NodeId node;
    uint32_t track = 0;
    Nanos start;
    Nanos end;
    bool has_end = false;  // otherwise only the start is known
  };
  // From a slice to a later one of another track.
  struct Flow {
    uint32_t from = 0;  // index into `slices`
    uint32_t to = 0;
    Arrow arrow = Arrow::kData;
  };

  std::vector<std::string> tracks;  // track names
  std::vector<Slice> slices;        // by track, start and, for equal starts, longest first
  std::vector<Flow> flows;          // by `to`
  uint64_t untimed = 0;             // nodes without a start: not on the timeline
  uint64_t crowded = 0;             // omitted: more than kMostLevels overlap on a track
  uint64_t backward = 0;            // dependencies on later nodes: no arrows
  uint64_t split_tracks = 0;        // extra tracks for overlapping slices
};
std::string_view Name(TimelinePlan::Arrow arrow);

inline constexpr size_t kMostLevels = 64;

// Makes the layout. Threads and streams become tracks; slices that overlap without nesting get
// additional tracks. Arrows are dependencies, and launches of device work, between different
// tracks. O(n log n).
TimelinePlan PlanTimeline(const Trace& trace);

// Argument of a node's event beside name and time, in the profiler's terms, so that readers of
// profiles understand it. Views are valid until the next call.
struct EventArg {
  struct Json {
    std::string_view text;
  };
  std::string_view key;
  std::variant<int64_t, uint64_t, std::string_view, Json> value;
};
class EventArgs {
 public:
  explicit EventArgs(const Trace& trace) : trace_(trace) {}
  // Returns the arguments of a node's event. Instants include their kind, which distinguishes work
  // from marks.
  const std::vector<EventArg>& Of(NodeId node, bool is_instant = false);

 private:
  void AddComm(const Comm& comm);
  void AddKind(NodeId node, const Comm* comm, bool is_instant);
  void AddInts(std::string_view key, IntListId list, std::string& text);

  const Trace& trace_;
  std::vector<EventArg> args_;
  std::string in_split_;
  std::string out_split_;
};

// Returns the category of a node's event: as recorded, else the usual one of its kind, else the
// kind's name.
std::string EventCategory(const Trace& trace, NodeId node);

}  // namespace etude
