#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/units.h"
#include "src/run/calls/comm_log.h"
#include "src/run/longest_path.h"
#include "src/run/recorded_run.h"
#include "src/trace/trace.h"

namespace etude {

// Time in a recorded run between two things ordered by the graph.
enum class GapKind : uint8_t {
  kHostGap,      // nothing recorded between two nodes of a thread: mostly Python
  kLaunch,       // from a launch to its work on an empty stream
  kQueue,        // between works on one stream, or after the work that another one waits for
  kHostWait,     // a thread waited in a call for work that is not on the path
  kTransfer,     // a collective or message took longer than for its quickest rank
  kUnexplained,  // before the first node of the chain, and after the last one
};
std::string_view Name(GapKind kind);  // stable: used in --json

// A rank's recorded run as a graph: two points per node, its begin and its end, and edges for their
// order. Independent of the trace once made.
struct RankRun {
  // Meaning of an edge.
  struct Step {
    uint32_t node = 0;  // its points are 2 × node and 2 × node + 1
    uint32_t lane = 0;  // index into `lanes`
    GapKind gap = GapKind::kHostGap;
    bool is_own = false;    // the weight is the node's own time
    bool is_woken = false;  // from the node's begin to the point that continued before its end
  };
  // Position of a call of `log` in the graph.
  struct Call {
    uint32_t node = 0;
    uint32_t lane = 0;
    bool has_callees = false;  // its thread's work in the meantime is inside it
  };

  std::vector<Nanos> times;  // by point, on the rank's clock
  std::vector<PathEdge> edges;
  std::vector<Step> steps;         // by edge
  std::vector<std::string> lanes;  // "thread 42", "device 0 stream 7"
  CommLog log;
  std::vector<std::optional<Call>> calls;  // by log.calls; nullopt: not in the graph
  uint64_t untimed = 0;                    // operators and work without times: not in the graph
  uint64_t contradictions = 0;             // dependencies contradicted by times: not in the graph
};

// Makes the run of a rank with communications `log`. It has no points if no node has a start and a
// duration. O(n log n).
RankRun MakeRankRun(const RecordedRun& run, CommLog log);
// Makes the run with the communications of its trace.
RankRun MakeRankRun(const RecordedRun& run, int64_t rank);

}  // namespace etude
