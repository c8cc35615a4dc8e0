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

// Why a collective ended on a rank when it did: what followed from the begin of a node on some rank
// up to this end, and what the time between was spent with, in ns.
struct SimCollectiveEnd {
  uint32_t node = 0;          // that ended
  uint32_t source_class = 0;  // of the rank with the begin
  uint32_t source_node = 0;
  int64_t latency = 0;   // of links
  int64_t transfer = 0;  // bytes / bandwidth
  int64_t handling = 0;  // endpoint delays, additions; what programs compute
  int64_t queue = 0;     // the rest
};

// What the program of a collective stands at: the first of its nodes that has begun and is not
// done.
struct SimProgramWait {
  uint32_t node = 0;  // of the rank: the collective
  uint64_t id = 0;    // of the node of the program, in its file
  bool receives = false;
  int64_t peer = -1;
  int64_t bytes = 0;
  int64_t tag = 0;
};

// What a rank did, in ns.
struct SimRankResult {
  bool finished = false;
  int64_t end = 0;       // of its last work
  int64_t computed = 0;  // sum over computations on the device
  int64_t wall = 0;      // from 0 to the end of its last node
  int64_t host = 0;      // time in which work of a kind ran, each instant once
  int64_t device = 0;
  int64_t comm = 0;
  int64_t memory = 0;
  std::vector<int64_t> begins;                // by node of its program; -1: never begun
  std::vector<int64_t> ends;                  // -1: never done
  std::vector<SimProgramWait> waits;          // of collectives that are not done
  std::vector<SimCollectiveEnd> collectives;  // that are done and took no recorded time, by node
};

// What was sent on a link; where links have no queues, what the ranks of a class send along a
// dimension, each of them.
struct SimLinkUse {
  int64_t from = 0;           // device, or class of ranks
  std::optional<int64_t> to;  // device; nullopt: along the dimension
  size_t dim = 0;
  uint64_t messages = 0;
  int64_t bytes = 0;
  int64_t busy = 0;    // ns that the link takes messages in
  int64_t waited = 0;  // ns that messages waited for it, summed
};

struct SimResult {
  std::vector<uint32_t> class_of;    // by rank: ranks of a class did the same
  std::vector<int64_t> first;        // rank, by class
  std::vector<SimRankResult> ranks;  // by class
  std::vector<SimLinkUse> links;     // that were used
  uint64_t events = 0;
  uint64_t messages = 0;
  uint64_t unreceived = 0;  // of them; of each class once
  int64_t time = 0;         // up to which it was simulated
  bool stopped = false;     // by RunContext::stop, before nothing happened any more

  const SimRankResult& OfRank(int64_t rank) const {
    return ranks[class_of[static_cast<size_t>(rank)]];
  }
  // How many ranks a class has, by class.
  std::vector<int64_t> ClassSizes() const {
    std::vector<int64_t> sizes(ranks.size());
    for (const uint32_t rank_class : class_of) ++sizes[rank_class];
    return sizes;
  }
};

struct SimOptions {
  // Ranks that are found to do the same are simulated once, with the same results: where classes
  // of ranks do not tell what happens first, each rank is simulated after all.
  bool by_class = true;
  // Where the program of a rank comes from, for messages; empty: "rank 3".
  std::function<std::string(int64_t)> name;
  // Is told of nodes that are done, and may stop the simulation; may be null.
  const RunContext* context = nullptr;
};

// kBadInput for a machine that cannot be, whatever runs on it.
Status CheckMachine(const SimMachine& machine);

// Runs the job on the machine until nothing happens any more, or it is stopped. Ranks that wait for
// ever are not finished. kBadInput for a machine or a program that cannot be.
Result<SimResult> Simulate(const SimMachine& machine, const SimWorkload& workload,
                           const SimOptions& options = {});

}  // namespace etude
