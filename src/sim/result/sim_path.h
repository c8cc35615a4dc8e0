#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"

namespace etude {

// Kind of a stretch of the critical path of a simulated job.
enum class SimPart : uint8_t {
  kHost,        // a computation on the host
  kCompute,     // a computation on the device
  kCollective,  // a collective that takes its recorded duration
  // Other collectives, from the begin on some rank to the resulting end:
  kCollectiveLatency,   // latency of the message links
  kCollectiveTransfer,  // bytes / bandwidth
  kCollectiveHandling,  // endpoint delays and additions
  kCollectiveQueue,     // remainder: busy or slow links, busy queues, control messages
  kLatency,             // latency of a message's links
  kTransfer,            // bytes / bandwidth of a message
  kQueue,               // remainder of a message: busy links, control messages
  kMemory,              // a memory access
  kWait,                // unknown
};
inline constexpr size_t kSimPartCount = static_cast<size_t>(SimPart::kWait) + 1;
std::string_view Name(SimPart part);  // stable: appears in --json

// Reason why a stretch did not begin earlier.
enum class SimCause : uint8_t {
  kStart,       // beginning of the job
  kDependency,  // an unfinished dependency
  kSlot,        // the slot was busy
  kFreed,  // a dependency on a node without work, which frees nodes only at the next completion
};
std::string_view Name(SimCause cause);

// Critical path of a simulated job, over all ranks: from its end back through the nodes that
// delayed later ones. The stretches cover the time from 0 to the end without gaps, so their lengths
// add up to the whole.
struct SimPath {
  struct Stretch {
    static constexpr uint32_t kNoNode = UINT32_MAX;

    SimPart part = SimPart::kWait;
    int64_t rank = 0;
    uint32_t node = kNoNode;  // of the rank's program; kNoNode for kWait
    int64_t begin = 0;        // ns
    int64_t end = 0;
    SimCause cause = SimCause::kStart;  // of the node's begin; kDependency for its later stretches
    int64_t held = 0;                   // ns for which the node was ready and its slot busy
    int64_t awaited = 0;  // ns for which the rank of the next stretch waited for this one to begin

    int64_t length() const { return end - begin; }
  };

  std::vector<Stretch> stretches;  // in order of time
  int64_t length = 0;              // ns
  uint64_t hops = 0;               // changes from one rank to another
  std::array<int64_t, kSimPartCount> parts{};
};

// Finds the critical path. If several nodes ended when another began, the path continues through a
// dependency of the latter, the lowest-numbered if there are several. O(nodes log nodes) for each
// rank class on the path, plus the number of group members.
SimPath FindSimPath(const SimMachine& machine, const SimWorkload& workload,
                    const SimResult& result);

}  // namespace etude
