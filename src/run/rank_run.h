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

// What lay in a recorded run between things of which the graph says that one came after the other.
enum class GapKind : uint8_t {
  kHostGap,      // nothing was recorded between two nodes of a thread: Python, mostly
  kLaunch,       // from a launch to its work on an empty stream
  kQueue,        // between works on one stream, or behind work that another one waits for
  kHostWait,     // a thread waited for device work that took as long as its node, and longer
  kTransfer,     // a collective or message took longer than for its quickest rank
  kUnexplained,  // before the first node of the chain, and behind the last one
};
std::string_view Name(GapKind kind);  // stable: appears in --json

// A rank's recorded run as a graph: two points for each of its nodes, where it begins and where it
// ends, and what came before what. Needs the trace no more.
struct RankRun {
  // What an edge stands for.
  struct Step {
    uint32_t node = 0;  // its points are 2 × node and the next
    uint32_t lane = 0;  // of `lanes`
    GapKind gap = GapKind::kHostGap;
    bool is_own = false;    // the weight is what the node itself takes
    bool is_woken = false;  // from the node's begin to what went on before its end
  };
  // Where a call of `log` is in the graph.
  struct Call {
    uint32_t node = 0;
    uint32_t lane = 0;
    bool has_callees = false;  // what its thread does meanwhile is inside of it
  };

  std::vector<Nanos> times;  // of the points, by the rank's clock
  std::vector<PathEdge> edges;
  std::vector<Step> steps;         // of the edges
  std::vector<std::string> lanes;  // "thread 42", "device 0 stream 7"
  CommLog log;
  std::vector<std::optional<Call>> calls;  // of log.calls; nullopt: not in the graph
  uint64_t untimed = 0;                    // operators and work without times: not in it
  uint64_t contradictions = 0;             // dependencies that times deny: not in it
};

// The run of a rank, whose communications are `log`. Without points if no node has a start and a
// duration. O(n log n).
RankRun MakeRankRun(const RecordedRun& run, CommLog log);
// The same with the communications that its trace has.
RankRun MakeRankRun(const RecordedRun& run, int64_t rank);

}  // namespace etude
