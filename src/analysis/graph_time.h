#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/analysis/comm_log.h"
#include "src/analysis/comm_match.h"
#include "src/base/result.h"
#include "src/base/units.h"
#include "src/trace/recorded_wait.h"
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
inline constexpr size_t kGapKindCount = static_cast<size_t>(GapKind::kUnexplained) + 1;
std::string_view Name(GapKind kind);  // stable: appears in --json

// How long a recorded job takes by its graph alone: every node as long as recorded and as soon as
// what it waits for has ended.
struct GraphTime {
  // Along the longest chain, by what and where; most first. They add up to recorded − simulated.
  struct Gap {
    GapKind kind = GapKind::kHostGap;
    int64_t rank = 0;
    std::string lane;  // "thread 42", "device 0 stream 7"
    uint64_t count = 0;
    Nanos time;
  };

  Nanos recorded;  // from the first begin to the last end
  Nanos simulated;
  uint64_t nodes = 0;
  uint64_t untimed = 0;         // operators and work without times: not in it
  uint64_t contradictions = 0;  // dependencies that times or others deny: not in it
  uint64_t joint = 0;           // collectives and messages that ranks begin together
  uint64_t apart = 0;           // of which a member was done before another came: not in it
  uint64_t unaligned = 0;       // of ranks whose clocks cannot be compared: not in it
  std::vector<Gap> gaps;

  // Of the recorded time.
  double error() const {
    return recorded.count == 0 ? 0
                               : static_cast<double>((simulated - recorded).count) /
                                     static_cast<double>(recorded.count);
  }
};

// A rank of a recorded job. All must outlive the call.
struct RecordedRank {
  const Trace* trace = nullptr;
  const CommLog* log = nullptr;
  std::span<const RecordedWait> waits;  // FindRecordedWaits
};

// Threads and streams do their nodes one after the other, in the order of the recording. A
// collective begins when the last rank has come and then takes as long as for its quickest rank, a
// message likewise. Ranks whose clocks cannot be compared run by themselves. kBadInput if no node
// has a start and a duration. O(n log n).
Result<GraphTime> FindGraphTime(std::span<const RecordedRank> ranks, const CommMatch& match);

}  // namespace etude
