#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/sim/engine/sim_chain.h"
#include "src/sim/engine/sim_input.h"
#include "src/sim/engine/sim_pool.h"
#include "src/sim/models/sim_network_model.h"
#include "src/sim/plan/plan_program.h"

namespace etude {

// Actions available to PlanRuns. The simulation calls PlanRuns::Done with their number afterwards.
class PlanActions {
 public:
  virtual ~PlanActions() = default;
  virtual void SendOf(int64_t from, int64_t to, int64_t bytes, SimIndex action,
                      const SimChain& chain) = 0;
  virtual Status SendBySwitchesOf(const SwitchTransfer& transfer, int64_t from, SimIndex action,
                                  const SimChain& chain) = 0;
  // Works for some accesses to local memory, of so many bytes each.
  virtual void WorkOf(int64_t rank, int64_t bytes, int64_t accesses, SimIndex action,
                      const SimChain& chain) = 0;
  // Ends the stream of a rank.
  virtual void EndPlan(SimIndex stream, const SimChain& chain) = 0;
  virtual void FailPlan(SimIndex stream, const Error& error) = 0;
};

// Runs execution plans. A collective has one run, which its members join when they begin it.
//
// The steps of a thread block happen one after the other. A move first requests and receives all
// chunks that it reads from other GPUs, then works on them, and then sends all chunks that it
// writes. It ends when they have arrived; by a port, when they are sent. A signal is a message
// without bytes, which the block does not wait for; by a port it follows the chunks of this block
// on their way. docs/formats/mscclpp_plan.md defines the model.
class PlanRuns {
 public:
  explicit PlanRuns(PlanActions& actions) : actions_(actions) {}

  // Names the collective: tag and first rank.
  using Key = std::pair<int64_t, int64_t>;

  // Begins the collective on the member `me` (an index of `ranks`).
  void Begin(const Key& key, const PlanProgram& program, const std::vector<int64_t>& ranks,
             size_t me, SimIndex stream, const SimChain& chain);
  // Handles the end of an action.
  void Done(SimIndex action, const SimChain& chain);

 private:
  struct Block {
    size_t next = 0;      // step
    int64_t pending = 0;  // messages of the step that have not arrived
    int64_t by_port = 0;  // chunks sent by ports that have not arrived
    // Signals that follow these chunks: GPU, channel there.
    std::vector<std::pair<uint32_t, int64_t>> following;
    enum class Phase : uint8_t { kReady, kReads, kWorks, kWrites, kBlocked } phase = Phase::kReady;
    bool at_barrier = false;
  };
  struct Gpu {
    bool begun = false;
    SimIndex stream = 0;
    size_t left = 0;                // thread blocks
    std::vector<int64_t> notified;  // by channel
    std::vector<int64_t> semaphores;
    std::vector<Block> blocks;
    std::map<int64_t, int64_t> barriers;  // thread blocks that have arrived
  };
  struct Run {
    Key key;
    const PlanProgram* program = nullptr;
    std::vector<int64_t> ranks;
    std::vector<Gpu> gpus;
    size_t left = 0;  // GPUs that have not ended
    size_t acts = 0;  // actions under way
  };
  struct Act {
    enum class Kind : uint8_t { kRequest, kRead, kWork, kWrite, kPortWrite, kSignal, kSwitch } kind;
    SimIndex run = 0;
    uint32_t gpu = 0;
    uint32_t block = 0;
    uint32_t other = 0;    // GPU at the other end
    int64_t bytes = 0;     // of a request
    int64_t channel = -1;  // of a signal, at the other end
  };

  SimIndex RunOf(const Key& key, const PlanProgram& program, const std::vector<int64_t>& ranks);
  void Start(const Act& act, int64_t from, int64_t to, int64_t bytes, const SimChain& chain);
  // Continues a block as far as possible. Returns whether this ended the GPU's part.
  bool Advance(SimIndex run, uint32_t gpu, uint32_t block, const SimChain& chain);
  // Returns whether the block goes on at once.
  bool Step(SimIndex run, uint32_t gpu, uint32_t block, const SimChain& chain);
  bool Move(SimIndex run, uint32_t gpu, uint32_t block, const SimChain& chain);
  void Signal(SimIndex run, uint32_t gpu, uint32_t block, const SimChain& chain);
  // Continues the blocks of a GPU that wait for each other, or for signals.
  void Wake(SimIndex run, uint32_t gpu, const SimChain& chain);
  void PortsAreDone(SimIndex run, uint32_t gpu, uint32_t block, const SimChain& chain);
  void Release(SimIndex run);
  const PlanAction& ActionOf(SimIndex run, uint32_t gpu, uint32_t block) const;

  PlanActions& actions_;
  std::map<Key, SimIndex> run_of_;
  std::deque<Run> runs_;
  std::vector<SimIndex> free_runs_;
  SimPool<Act> acts_;
};

}  // namespace etude
