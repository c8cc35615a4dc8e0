#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/intervals.h"
#include "src/base/units.h"
#include "src/trace/recorded_wait.h"
#include "src/trace/trace.h"

namespace etude {

// What a stretch of the critical path, or of the time beside it, was spent with.
enum class PathPart : uint8_t {
  kHost,           // an operator or a call of the runtime ran
  kCompute,        // a kernel
  kCommunication,  // a collective, send or receive, on the host or a device
  kCopy,           // a copy or a fill
  kLaunchDelay,    // from the call that launched work to its beginning: the stream was empty
  kQueueWait,   // from the end of what work waited for, on its stream or another, to its beginning
  kSyncReturn,  // from the end of what a call waited for to the end of the call
  // Not on the path:
  kHostWait,  // a thread did nothing but wait for device work that the path does not go through
  kIdle,      // between nodes of a thread, or of two threads, nothing was recorded
  kOutside,   // before the path begins and after it ends
};
std::string_view Name(PathPart part);  // stable: appears in --json
// Whether the time of such a part is on the path.
bool IsOnPath(PathPart part);

// The longest chain of things that had to come one after the other.
//
// Where nodes have starts and durations the run is taken as recorded: threads do their nodes in
// order, work begins after the latest of its launch, the work before it on its stream and the work
// it waits for, calls that wait end after what they wait for. Where only durations are known
// (Chakra), nodes come after their dependencies and their parents, and weigh what they take without
// their children.
struct CriticalPath {
  struct Stretch {
    PathPart part = PathPart::kHost;
    NodeId node;                   // whose time it is; of delays and waits, what is waited to begin
    Nanos length;                  // 0 for parts that are not on the path
    std::optional<Interval> time;  // nullopt if starts are unknown
  };

  bool by_clock = false;           // as recorded; else by dependencies
  std::vector<Stretch> stretches;  // in order; of parts beside the path those within it
  Nanos length;                    // sum over the stretches
  std::optional<Interval> span;    // of the nodes that count; nullopt if starts are unknown
  Nanos longest_node;              // the most that a single node takes by itself
  Nanos work;                      // the sum of what all nodes take by themselves
  uint64_t nodes = 0;              // that count: with times
  uint64_t untimed = 0;            // operators and work without times
  uint64_t contradictions = 0;     // dependencies left out: times or other dependencies deny them
};

// `waits`: what synchronisation says beyond the trace's dependencies (FindRecordedWaits). O(n log
// n).
CriticalPath FindCriticalPath(const Trace& trace, std::span<const RecordedWait> waits);

}  // namespace etude
