#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "src/sim/collective/sim_collectives.h"
#include "src/sim/collective/timed_collectives.h"
#include "src/sim/engine/shared_cores.h"
#include "src/sim/engine/sim_messages.h"
#include "src/sim/engine/sim_timeline.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/models/sim_compute_model.h"
#include "src/sim/models/sim_memory_model.h"
#include "src/sim/result/busy_time.h"

namespace etude {

// Executes the programs of all ranks: issues nodes as they become ready.
class SimExecution {
 public:
  SimExecution(const SimInput& input, const SimComputeModel& compute, SimMemoryModel& memory,
               SimTimeline& timeline, SimMessages& messages, SimCollectives& collectives,
               TieWatch& ties, NodeListener& listener);

  // Lets host computations share `cores`, and collectives take known times. Call before Begin.
  void UseTimes(SharedCores& cores, TimedCollectives& timed) {
    cores_ = &cores;
    timed_ = &timed;
  }
  // Begins all nodes without dependencies.
  void Begin();

  // Event handlers.
  void Complete(RankClassId rank_class, SimIndex index);
  // Handles the arrival of a node's message: after the node's recorded time if that counts.
  void MessageDone(RankClassId rank_class, SimIndex index);
  void Wake(RankClassId rank_class) { IssueReady(rank_class); }

  // Totals over all ranks.
  uint64_t nodes() const { return nodes_; }
  uint64_t nodes_done() const { return nodes_done_; }

  // Returns the results by class. Call once only.
  std::vector<SimRankResult> TakeResults();

 private:
  int64_t BeginOf(RankClassId rank_class) const;
  static constexpr size_t kSlots = kNoSlot + 1;
  enum Kind : size_t { kHost, kDevice, kComm, kMemory, kKinds };

  struct State {
    const SimRank* self = nullptr;
    const SimProgram* program = nullptr;
    std::vector<uint32_t> waits;
    std::vector<size_t> group_slots;  // SlotOf
    std::array<std::priority_queue<SimIndex, std::vector<SimIndex>, std::greater<>>, kSlots> ready;
    std::array<bool, kSlots> taken{};
    size_t left = 0;       // unfinished nodes
    size_t in_flight = 0;  // of the unfinished nodes
    bool issuing = false;
    std::vector<SimIndex>
        freed;  // by nodes without work; issued the next time that nodes are issued
    SimRankResult result;
    std::array<BusyTime, kKinds> busy;
  };

  static Kind KindOf(const SimNode& node);
  static void MakeReady(State& state, SimIndex index);
  static TieWatch::Completion BeforeCompletion(const State& state, SimIndex index);
  void IssueReady(RankClassId rank_class);
  void Issue(RankClassId rank_class, SimIndex index);
  void Start(RankClassId rank_class, SimIndex index, const SimNode& node);
  std::string NoSuchRank(std::string_view what, int64_t rank) const;
  void Send(RankClassId rank_class, SimIndex index, const SimNode& node);
  void Receive(RankClassId rank_class, SimIndex index, const SimNode& node);
  void Wait(RankClassId rank_class, SimIndex index, int64_t time);
  void Skip(RankClassId rank_class, SimIndex index);

  const SimInput& input_;
  const SimComputeModel& compute_;
  SimMemoryModel& memory_;
  SimTimeline& timeline_;
  SimMessages& messages_;
  SimCollectives& collectives_;
  TieWatch& ties_;
  NodeListener& listener_;
  SharedCores* cores_ = nullptr;       // null: each rank has its own
  TimedCollectives* timed_ = nullptr;  // null: `collectives_`
  std::vector<State> states_;          // by class
  uint64_t nodes_ = 0;
  uint64_t nodes_done_ = 0;
};

}  // namespace etude
