#include "src/sim/plan/plan_program.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "src/base/ceil_div.h"

namespace etude {
namespace {

constexpr size_t kMostActions = size_t{1} << 22;
constexpr int64_t kMostPlanBytes = int64_t{1} << 42;  // of all chunks of an input or output

// Makes the actions of one size.
class PlanUnroller {
 public:
  PlanUnroller(const CollectivePlan& plan, int64_t bytes)
      : plan_(plan), bytes_(plan.DividedBytes(bytes)) {}

  Status Unroll(const std::vector<PlanOp>& steps, std::vector<PlanAction>& actions) {
    for (size_t i = 0; i < steps.size();) {
      const auto pipeline = static_cast<size_t>(steps[i].pipeline_steps);
      if (pipeline == 0) {
        actions.push_back(ActionOf(steps[i++], {}));
        ETUDE_RETURN_IF_ERROR(Count(1));
        continue;
      }
      const int64_t unit = steps[i].unit_bytes;
      const int64_t all = steps[i].pipeline_chunks * CeilDiv(bytes_, plan_.chunks);
      const int64_t rounds = CeilDiv(all, unit);
      ETUDE_RETURN_IF_ERROR(Count(pipeline * static_cast<size_t>(rounds)));
      for (int64_t round = 0; round < rounds; ++round) {
        for (size_t j = 0; j < pipeline; ++j) {
          actions.push_back(ActionOf(steps[i + j], {.begin = round * unit, .bytes = unit}));
        }
      }
      i += pipeline;
    }
    return {};
  }

 private:
  // Part of each run of chunks that a round of a pipeline handles.
  struct Window {
    int64_t begin = 0;
    int64_t bytes = INT64_MAX;
  };

  Status Count(size_t more) {
    count_ += more;
    if (count_ <= kMostActions) return {};
    return BadInput(fmt::format("{}: found more than {} steps with all rounds of its pipelines",
                                plan_.path, kMostActions));
  }

  // Returns all · part / parts, rounded down, without an overflow.
  static int64_t PartOf(int64_t all, int64_t part, int64_t parts) {
    return all / parts * part + all % parts * part / parts;
  }
  int64_t Offset(int64_t chunk) const { return PartOf(bytes_, chunk, plan_.chunks); }
  int64_t BytesOf(const PlanChunks& chunks, const PlanOp& op, const Window& window) const {
    const int64_t all = Offset(chunks.index + chunks.count) - Offset(chunks.index);
    const int64_t part = PartOf(all, op.part + 1, op.parts) - PartOf(all, op.part, op.parts);
    return std::clamp<int64_t>(part - window.begin, 0, window.bytes);
  }
  PlanAction ActionOf(const PlanOp& op, const Window& window) const {
    PlanAction action{.op = &op};
    const bool switches = op.step == PlanStep::kSwitch || op.step == PlanStep::kMulticast;
    if (switches) {
      for (const PlanChunks& chunks : op.writes) {
        action.bytes = std::min(action.bytes + BytesOf(chunks, op, window), int64_t{1} << 60);
      }
      return action;
    }
    for (const PlanChunks& chunks : op.reads) {
      const int64_t bytes = BytesOf(chunks, op, window);
      if (chunks.gpu >= 0) action.reads.push_back({static_cast<uint32_t>(chunks.gpu), bytes});
      action.bytes = std::max(action.bytes, bytes);
    }
    for (const PlanChunks& chunks : op.writes) {
      if (chunks.gpu < 0) continue;
      action.writes.push_back({static_cast<uint32_t>(chunks.gpu), BytesOf(chunks, op, window)});
    }
    // All operands are read, and the sum, or the copy, is written.
    if (op.works) action.accesses = std::ssize(op.reads) + 1;
    return action;
  }

  const CollectivePlan& plan_;
  const int64_t bytes_;
  size_t count_ = 0;
};

// Runs a plan without times, to find thread blocks that wait forever. Which step comes first does
// not matter to that: a notification is never lost.
class PlanCheck {
 public:
  explicit PlanCheck(const PlanProgram& program) : program_(program), gpus_(program.gpus.size()) {
    for (size_t i = 0; i < gpus_.size(); ++i) {
      const CollectivePlan::Gpu& gpu = program.plan->gpus[i];
      gpus_[i].notified.resize(gpu.channels.size());
      gpus_[i].semaphores = gpu.semaphores;
      gpus_[i].next.resize(gpu.blocks.size());
      gpus_[i].arrived.resize(gpu.blocks.size());
    }
  }

  Status Run() {
    for (bool moves = true; moves;) {
      moves = false;
      for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu) {
        for (size_t block = 0; block < gpus_[gpu].next.size(); ++block) {
          while (Step(gpu, block)) moves = true;
        }
      }
    }
    for (size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      for (size_t block = 0; block < gpus_[gpu].next.size(); ++block) {
        const std::vector<PlanAction>& actions = program_.gpus[gpu][block];
        const size_t next = gpus_[gpu].next[block];
        if (next == actions.size()) continue;
        return BadInput(fmt::format("{}: waits forever for {}",
                                    TextOf(*program_.plan, *actions[next].op),
                                    WhatFor(gpu, *actions[next].op)));
      }
    }
    return {};
  }

 private:
  struct Gpu {
    std::vector<int64_t> notified;  // by channel
    std::vector<int64_t> semaphores;
    std::vector<size_t> next;             // by thread block
    std::vector<bool> arrived;            // by thread block: at its barrier
    std::map<int64_t, int64_t> barriers;  // thread blocks that have arrived
  };

  // Returns whether the block's next step is done.
  bool Step(uint32_t number, size_t block) {
    Gpu& gpu = gpus_[number];
    const std::vector<PlanAction>& actions = program_.gpus[number][block];
    if (gpu.next[block] == actions.size()) return false;
    const PlanOp& op = *actions[gpu.next[block]].op;
    switch (op.step) {
      case PlanStep::kSignal:
        for (const uint32_t channel : op.channels) {
          const CollectivePlan::Channel& end = program_.plan->gpus[number].channels[channel];
          if (end.other >= 0) ++gpus_[end.gpu].notified[static_cast<size_t>(end.other)];
        }
        break;
      case PlanStep::kWait:
        if (!TakeAll(op.channels, gpu.notified)) return false;
        break;
      case PlanStep::kAcquire:
        if (!TakeAll(op.semaphores, gpu.semaphores)) return false;
        break;
      case PlanStep::kRelease:
        for (const uint32_t semaphore : op.semaphores) ++gpu.semaphores[semaphore];
        break;
      case PlanStep::kBarrier: {
        int64_t& arrived = gpu.barriers[op.barrier];
        if (!gpu.arrived[block]) {
          gpu.arrived[block] = true;
          ++arrived;
        }
        if (arrived < op.barrier_blocks) return false;
        Leave(number, op.barrier);
        return true;
      }
      case PlanStep::kMove:
      case PlanStep::kFlush:
      case PlanStep::kSwitch:
      case PlanStep::kMulticast: break;
    }
    ++gpu.next[block];
    return true;
  }
  // All blocks at a barrier go on.
  void Leave(uint32_t number, int64_t barrier) {
    Gpu& gpu = gpus_[number];
    gpu.barriers[barrier] = 0;
    for (size_t block = 0; block < gpu.next.size(); ++block) {
      if (!gpu.arrived[block]) continue;
      if (program_.gpus[number][block][gpu.next[block]].op->barrier != barrier) continue;
      gpu.arrived[block] = false;
      ++gpu.next[block];
    }
  }
  static bool TakeAll(const std::vector<uint32_t>& numbers, std::vector<int64_t>& counts) {
    const auto is_there = [&](uint32_t number) { return counts[number] > 0; };
    if (!std::ranges::all_of(numbers, is_there)) return false;
    for (const uint32_t number : numbers) --counts[number];
    return true;
  }
  std::string WhatFor(size_t gpu, const PlanOp& op) const {
    if (op.step == PlanStep::kBarrier) {
      return fmt::format("{} thread blocks at barrier {}", op.barrier_blocks, op.barrier);
    }
    if (op.step == PlanStep::kAcquire) {
      for (const uint32_t one : op.semaphores) {
        if (gpus_[gpu].semaphores[one] == 0) return fmt::format("semaphore {}", one);
      }
    }
    for (const uint32_t one : op.channels) {
      if (gpus_[gpu].notified[one] > 0) continue;
      return fmt::format("a signal of GPU {}", program_.plan->gpus[gpu].channels[one].gpu);
    }
    return "signals";
  }

  const PlanProgram& program_;
  std::vector<Gpu> gpus_;
};

}  // namespace

Result<PlanProgram> MakePlanProgram(const CollectivePlan& plan, int64_t bytes) {
  if (bytes > kMostPlanBytes || plan.DividedBytes(bytes) > kMostPlanBytes) {
    return BadInput(fmt::format("{}: found a collective of {} bytes, expected at most {}",
                                plan.path, bytes, kMostPlanBytes));
  }
  PlanProgram program{.plan = &plan, .gpus = {}};
  PlanUnroller unroller(plan, bytes);
  for (const CollectivePlan::Gpu& gpu : plan.gpus) {
    std::vector<std::vector<PlanAction>>& blocks = program.gpus.emplace_back(gpu.blocks.size());
    for (size_t i = 0; i < blocks.size(); ++i) {
      ETUDE_RETURN_IF_ERROR(unroller.Unroll(gpu.blocks[i], blocks[i]));
    }
  }
  ETUDE_RETURN_IF_ERROR(PlanCheck(program).Run());
  return program;
}

}  // namespace etude
