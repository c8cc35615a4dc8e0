#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/container/intervals.h"
#include "src/base/units.h"
#include "src/run/path_part.h"
#include "src/run/recorded_run.h"
#include "src/trace/trace.h"

namespace etude {

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

// O(n log n).
CriticalPath FindCriticalPath(const RecordedRun& run);

}  // namespace etude
