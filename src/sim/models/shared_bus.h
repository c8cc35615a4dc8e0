#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <vector>

#include "src/sim/engine/sim_pool.h"
#include "src/sim/models/sim_endpoint_model.h"

namespace etude {

// The memory buses of all ranks, as ASTRA-sim has them: a bus between the NPU and the memory, at
// whose NPU's end an inner bus hangs, over which goes whatever comes to that end or leaves it. An
// end sends one transfer at a time, or receives (LogGP).
class SharedBuses {
 public:
  SharedBuses(const SharedBus& bus, const SimInput& input, SimTimeline& timeline, TieWatch& ties,
              HandlingListener& listener);

  // The listener is told of `handled` once the bus has carried what is handled.
  void Carry(RankClassId rank_class, const Handling& handling, const LocalEvent& handled);
  // An event of a bus: its subject is the end.
  void Do(RankClassId rank_class, const LocalEvent& event);

 private:
  enum End : SimIndex { kNpu, kMemory, kInnerNpu, kInnerMemory, kEnds };
  // What the NPU's end does with a transfer after its way over the inner bus.
  enum class Then : uint8_t { kSend, kReduce, kFinish };
  struct Transfer {
    int64_t bytes = 0;
    bool reduces = false;  // is added where it comes
    bool returns = false;  // goes back from where it comes
    LocalEvent handled;    // of the outer bus
    SimIndex outer = 0;    // of the inner bus: the transfer that this is a part of
    Then then = Then::kSend;
  };
  enum class Does : uint8_t { kNothing, kSends, kReceives };
  struct Port {
    Does does = Does::kNothing;
    Does did = Does::kNothing;
    int64_t since = 0;   // when its last transfer ended
    int64_t in_row = 0;  // transfers that it has sent since one came
    std::list<Transfer> to_send;
    std::list<Transfer> coming;
  };
  struct Bus {
    std::array<Port, kEnds> ports;
    std::list<Transfer> reductions;  // of the NPU's end, the first one runs
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
  TieWatch& ties_;
  HandlingListener& listener_;
  std::vector<Bus> buses_;   // by class
  SimPool<Transfer> outer_;  // those whose parts are on inner buses
};

}  // namespace etude
