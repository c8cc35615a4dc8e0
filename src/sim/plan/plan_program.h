#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/sim/plan/collective_plan.h"

namespace etude {

// A message between two GPUs of a plan.
struct PlanMessage {
  uint32_t gpu = 0;  // at the other end
  int64_t bytes = 0;
};

// A step of a thread block, for one size of the collective.
struct PlanAction {
  const PlanOp* op = nullptr;
  std::vector<PlanMessage> reads;   // from other GPUs
  std::vector<PlanMessage> writes;  // to other GPUs
  int64_t bytes = 0;                // of a transfer by switches, or of work on the GPU
  int64_t accesses = 0;             // of work: how often these bytes are read or written
};

// A plan for one size of the collective, with pipelines unrolled. Refers to the plan.
struct PlanProgram {
  const CollectivePlan* plan = nullptr;
  std::vector<std::vector<std::vector<PlanAction>>> gpus;  // by GPU and thread block
};

// Makes the program of a collective with `bytes` bytes on each member. kBadInput for more than 2^22
// steps or 4 TiB, and for a deadlock: some thread blocks wait forever.
Result<PlanProgram> MakePlanProgram(const CollectivePlan& plan, int64_t bytes);

}  // namespace etude
