#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <vector>

#include "src/sim/engine/sim_pool.h"
#include "src/sim/models/sim_endpoint_model.h"

namespace etude {

// Memory buses of all ranks, as in ASTRA-sim. A bus connects an NPU and its memory. All traffic at
// the NPU's end also crosses an inner bus there. An end either sends one transfer at a time, or
// receives (LogGP).
class SharedBuses {
 public:
  SharedBuses(const SharedBus& bus, const SimInput& input, SimTimeline& timeline,
              HandlingListener& listener);

  // Carries the data of a handling. The listener receives `handled` when the bus is done.
  void Carry(RankClassId rank_class, const Handling& handling, const LocalEvent& handled);
  // Handles an event of a bus; its subject is the end.
  void Do(RankClassId rank_class, const LocalEvent& event);

 private:
  enum End : SimIndex { kNpu, kMemory, kInnerNpu, kInnerMemory, kEnds };
  // Action at the NPU's end after a transfer over the inner bus.
  enum class Then : uint8_t { kSend, kReduce, kFinish };
  struct Transfer {
    int64_t bytes = 0;
    bool reduces = false;  // added to the receiver's data
    bool returns = false;  // goes back after its arrival
    LocalEvent handled;    // outer bus only
    SimIndex outer = 0;    // inner bus only: the transfer that this is a part of
    Then then = Then::kSend;
  };
  enum class Does : uint8_t { kNothing, kSends, kReceives };
  struct Port {
    Does does = Does::kNothing;
    Does did = Does::kNothing;
    int64_t since = 0;   // end of its last transfer
    int64_t in_row = 0;  // transfers sent since the last one received
    std::list<Transfer> to_send;
    std::list<Transfer> coming;
  };
  struct Bus {
    std::array<Port, kEnds> ports;
    std::list<Transfer> reductions;  // at the NPU's end; the first one runs
  };

  static End Other(End end) { return static_cast<End>(end ^ 1); }
  void Request(RankClassId rank_class, End end, const Transfer& transfer);
  void GoInside(RankClassId rank_class, End from, const Transfer& outer, Then then, bool returns);
  void Sent(RankClassId rank_class, End end);
  void Came(RankClassId rank_class, End end);
  void Reduced(RankClassId rank_class);
  void PlanReduction(RankClassId rank_class);
  void BackFromInside(RankClassId rank_class, const Transfer& inner);
  void SendNext(RankClassId rank_class, End end);

  const SharedBus bus_;
  SimTimeline& timeline_;
  HandlingListener& listener_;
  std::vector<Bus> buses_;   // by class
  SimPool<Transfer> outer_;  // transfers whose parts are on inner buses
};

}  // namespace etude
