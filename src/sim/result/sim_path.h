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

// What a stretch of the critical path of a simulated job was spent with.
enum class SimPart : uint8_t {
  kHost,        // a computation on the host
  kCompute,     // a computation on the device
  kCollective,  // a collective that takes its recorded time
  // Of other collectives, from the begin on some rank to the end that followed from it:
  kCollectiveLatency,   // of the links that its messages took
  kCollectiveTransfer,  // of their bytes
  kCollectiveHandling,  // endpoint delays and additions
  kCollectiveQueue,     // the rest: links and places that others had, slow links, control messages
  kLatency,             // of the links of a message
  kTransfer,            // of its bytes
  kQueue,               // the rest of its way: links that carried others, control messages
  kMemory,              // an access to memory
  kWait,                // nothing of what is known
};
inline constexpr size_t kSimPartCount = static_cast<size_t>(SimPart::kWait) + 1;
std::string_view Name(SimPart part);  // stable: appears in --json

// Why a stretch did not begin earlier.
enum class SimCause : uint8_t {
  kStart,       // it began with the job
  kDependency,  // a node that it waits for had not ended
  kSlot,        // another node had the place of its kind
  kFreed,       // it waits for a node without work, behind which nodes begin at the next completion
};
std::string_view Name(SimCause cause);

// What determined when a simulated job was done: from its end backwards through what had to end for
// something to begin, over all ranks. The stretches follow one another without gaps from 0 to the
// end, so that their lengths add up to the whole.
struct SimPath {
  struct Stretch {
    static constexpr uint32_t kNoNode = UINT32_MAX;

    SimPart part = SimPart::kWait;
    int64_t rank = 0;
    uint32_t node = kNoNode;  // of the rank's program; kNoNode for kWait
    int64_t begin = 0;        // ns
    int64_t end = 0;
    SimCause cause = SimCause::kStart;  // of the node's begin; kDependency of its later stretches
    int64_t held = 0;                   // ns for which it was ready and had no place
    int64_t awaited = 0;  // ns for which the rank whose stretch comes next waited for it to begin

    int64_t length() const { return end - begin; }
  };

  std::vector<Stretch> stretches;  // in order of time
  int64_t length = 0;              // ns
  uint64_t hops = 0;               // how often it goes from a rank to another
  std::array<int64_t, kSimPartCount> parts{};
};

// Of several nodes that ended at the time at which another one began, the path goes through one
// that this waits for, and of these through that with the lowest number. O(nodes log nodes) for
// each class of ranks that the path comes to, and what groups have members.
SimPath FindSimPath(const SimMachine& machine, const SimWorkload& workload,
                    const SimResult& result);

}  // namespace etude
