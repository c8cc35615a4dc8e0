#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"

namespace etude {

// Cause of a collective's end on a rank: the chain from the begin of a node on some rank to this
// end, with its time by component, in ns.
struct SimCollectiveEnd {
  uint32_t node = 0;          // the ended collective
  uint32_t source_class = 0;  // class of the rank where the chain begins
  uint32_t source_node = 0;
  int64_t latency = 0;   // link latency
  int64_t transfer = 0;  // bytes / bandwidth
  int64_t handling = 0;  // endpoint delays, additions, computations of programs
  int64_t queue = 0;     // remainder
};

// Current node of a collective's program: the first node that has begun and is not done.
struct SimProgramWait {
  uint32_t node = 0;  // node of the rank: the collective
  uint64_t id = 0;    // program node, as in its file
  bool receives = false;
  int64_t peer = -1;
  int64_t bytes = 0;
  int64_t tag = 0;
};

// Result of a rank; times in ns.
struct SimRankResult {
  bool finished = false;
  int64_t end = 0;       // end of its last work
  int64_t computed = 0;  // sum over device computations
  int64_t wall = 0;      // from 0 to the end of its last node
  int64_t host = 0;      // busy time by kind of work, overlaps counted once
  int64_t device = 0;
  int64_t comm = 0;
  int64_t memory = 0;
  std::vector<int64_t> begins;        // by node of the program; -1: never begun
  std::vector<int64_t> ends;          // -1: never done
  std::vector<SimProgramWait> waits;  // of unfinished collectives
  std::vector<SimCollectiveEnd>
      collectives;  // by node; finished collectives that took no recorded time
};

// Traffic of a link. In networks without queues: traffic of each rank of a class along a dimension.
struct SimLinkUse {
  int64_t from = 0;           // device, or rank class
  std::optional<int64_t> to;  // device; nullopt: along the dimension
  size_t dim = 0;
  uint64_t messages = 0;
  int64_t bytes = 0;
  int64_t hop_bytes = 0;    // without `to`: bytes, times the links that they cross
  int64_t busy = 0;         // ns in which the link accepts messages
  int64_t waited = 0;       // ns that messages waited for the link, summed
  double bytes_per_ns = 0;  // bandwidth of a link of a graph, whose ends are its nodes; 0: others
};

struct SimResult {
  std::vector<uint32_t> class_of;    // by rank; ranks of a class did the same
  std::vector<int64_t> first;        // first rank, by class
  std::vector<SimRankResult> ranks;  // by class
  std::vector<SimLinkUse> links;     // used links only
  uint64_t events = 0;
  uint64_t messages = 0;
  uint64_t unreceived = 0;  // messages without a receive, counted once per class
  int64_t time = 0;         // end of the simulated time, ns
  bool stopped = false;     // by RunContext::stop, before the last event

  const SimRankResult& OfRank(int64_t rank) const {
    return ranks[class_of[static_cast<size_t>(rank)]];
  }
  // Returns the number of ranks by class.
  std::vector<int64_t> ClassSizes() const {
    std::vector<int64_t> sizes(ranks.size());
    for (const uint32_t rank_class : class_of) ++sizes[rank_class];
    return sizes;
  }
};

struct SimOptions {
  // Simulate equivalent ranks once, with the same results. Ranks are simulated individually if
  // classes leave the order of events undetermined.
  bool by_class = true;
  // Returns the source of a rank's program, for messages; empty: "rank 3".
  std::function<std::string(int64_t)> name;
  // Receives progress and may stop the simulation; may be null.
  const RunContext* context = nullptr;
};

// Checks a machine independently of a workload. kBadInput if it is invalid.
Status CheckMachine(const SimMachine& machine);

// Runs the job on the machine until no event is left or the simulation is stopped. Ranks in a
// deadlock are not finished. kBadInput for an invalid machine or program.
Result<SimResult> Simulate(const SimMachine& machine, const SimWorkload& workload,
                           const SimOptions& options = {});

}  // namespace etude
