#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"
#include "src/trace/words/enums.h"

namespace etude {

// Place of an operation in a plan's file: numbers as in the file, -1 if not inside a pipeline.
struct PlanOpPlace {
  int64_t gpu = 0;
  int64_t block = 0;  // thread block
  int64_t op = 0;
  int64_t inner = -1;  // within the pipeline `op`
};

// Consecutive chunks that an operation reads or writes, on its own GPU or on another one.
struct PlanChunks {
  int64_t gpu = -1;  // -1: its own
  int64_t index = 0;
  int64_t count = 0;
};

enum class PlanStep : uint8_t {
  kMove,      // reads chunks of other GPUs, adds or copies, and writes chunks of other GPUs
  kSignal,    // notifies the other ends of channels
  kWait,      // waits for a notification on each channel
  kFlush,     // waits until all chunks written by ports have arrived
  kBarrier,   // waits for other thread blocks of the GPU
  kAcquire,   // takes from semaphores of the GPU
  kRelease,   // gives to semaphores of the GPU
  kSwitch,    // switches add chunks of all GPUs of a group, and write the sums to all of them
  kMulticast  // switches write chunks to all GPUs of a group
};

// A step of a thread block. An operation of the file is up to three steps.
struct PlanOp {
  PlanStep step = PlanStep::kMove;
  std::string name;  // of the operation
  PlanOpPlace place;
  std::vector<uint32_t> channels;  // of the GPU: CollectivePlan::Gpu::channels
  bool by_port = false;            // continues before written chunks have arrived
  std::vector<PlanChunks> reads;
  std::vector<PlanChunks> writes;
  bool works = false;  // adds or copies on the GPU
  int64_t part = 0;    // a part of the chunks, if several thread blocks share them
  int64_t parts = 1;
  std::vector<uint32_t> semaphores;  // of the GPU
  int64_t barrier = 0;
  int64_t barrier_blocks = 0;
  std::vector<int64_t> group;  // GPUs
  // Number of a pipeline's steps, bytes of a unit and chunks; in its first step.
  int64_t pipeline_steps = 0;
  int64_t unit_bytes = 0;
  int64_t pipeline_chunks = 0;
};

// An execution plan of MSCCL++ (docs/formats/mscclpp_plan.md).
struct CollectivePlan {
  struct Channel {
    uint32_t gpu = 0;    // at the other end
    int64_t other = -1;  // number of the channel there; -1: none
  };
  struct Gpu {
    std::vector<Channel> channels;
    std::vector<int64_t> semaphores;  // values at the begin
    std::vector<std::vector<PlanOp>> blocks;
  };

  std::string path;
  std::string name;
  CollectiveType type = CollectiveType::kUnknown;
  int64_t chunks = 1;         // of the input, or of the output without an input
  bool is_of_output = false;  // the chunks are those of the output
  int64_t least_bytes = 0;    // of the collective
  int64_t most_bytes = INT64_MAX;
  std::vector<Gpu> gpus;

  // Returns the bytes that `chunks` are divided into, for a collective of `bytes` bytes a member.
  int64_t DividedBytes(int64_t bytes) const;
};

// Returns the plan that a collective of a type uses: one for its number of members and for its
// size; nullptr: none.
const CollectivePlan* FittingPlan(const SystemModel& system, CollectiveType type, int64_t members,
                                  int64_t bytes);

// Parses a plan. kBadInput with `path`, GPU, thread block and operation.
Result<CollectivePlan> ParseCollectivePlan(const std::string& text, const std::string& path);

// Returns "plan.json: GPU 0, thread block 1, operation 2 (put)".
std::string TextOf(const CollectivePlan& plan, const PlanOp& op);

}  // namespace etude
