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

// Longest chain of dependent nodes and delays.
//
// If nodes have starts and durations, the run is taken as recorded: threads run their nodes in
// order; work begins after its launch, the previous work on its stream and the work it waits for;
// waiting calls end after the awaited work. If only durations are known (Chakra), nodes come after
// their dependencies and their parents, and are weighed by their exclusive durations.
struct CriticalPath {
  struct Stretch {
    PathPart part = PathPart::kHost;
    NodeId node;                   // node that the time belongs to; for delays and waits, the
                                   // waiting node
    Nanos length;                  // 0 for parts that are not on the path
    std::optional<Interval> time;  // nullopt if starts are unknown
  };

  bool by_clock = false;           // as recorded; else by dependencies
  std::vector<Stretch> stretches;  // in order; parts beside the path are those within it
  Nanos length;                    // sum over the stretches
  std::optional<Interval> span;    // of the counted nodes; nullopt if starts are unknown
  Nanos longest_node;              // max own time of a node
  Nanos work;                      // total own time of all nodes
  uint64_t nodes = 0;              // number of nodes with times
  uint64_t untimed = 0;            // operators and work without times
  uint64_t contradictions = 0;     // dependencies left out because times or other dependencies
                                   // contradict them
};

// Finds the critical path of a run. O(n log n).
CriticalPath FindCriticalPath(const RecordedRun& run);

}  // namespace etude
