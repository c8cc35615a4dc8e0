#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/transform/runnable/runnable_job.h"

namespace etude {

struct AstraOrder {
  // By rank: its communication nodes except receives, in their required order.
  std::vector<std::vector<uint32_t>> slots;
  // Description of the first communication removed to prevent a deadlock; "": none. Its plan is
  // changed accordingly.
  std::string first_cut;
};

// ASTRA-sim lets a rank communicate once at a time (receives are free), and a collective holds the
// rank until all others are there. Finds one order for the whole job: among communications whose
// ranks are all ready, the first one in the traces. If none is ready, some communication waits for
// itself, and the first is replayed or left out.
AstraOrder OrderCommunication(const std::vector<RunnableRank>& ranks,
                              std::vector<std::vector<RunnablePlan>>& plans);

}  // namespace etude
