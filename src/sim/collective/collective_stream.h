#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/sim/collective/collective_phases.h"
#include "src/sim/engine/sim_chain.h"
#include "src/sim/engine/sim_input.h"
#include "src/sim/models/sim_endpoint_model.h"

namespace etude {

// State of a phase for the ring, direct exchange, and halving and doubling.
struct ExchangeState {
  struct Packet {
    int64_t target = 0;
    int64_t source = 0;
    int64_t bytes = 0;
  };
  std::vector<Packet> packets;
  size_t first_packet = 0;
  int64_t bytes = 0;  // per message, for the next one
  int64_t left = 0;   // messages left to send
  int64_t free = 0;   // packets that can be sent now
  int64_t received = 0;
  int64_t parallel = 1;  // packets at the start
  // `parallel` packets without reduction alternate with `reductions` packets with it.
  int64_t reductions = 0;
  int64_t plain_left = 0;
  int64_t reductions_left = 0;
  bool reducing = false;  // first half of an all-reduce
  int64_t target = 0;     // index among the members
  int64_t source = 0;
  double offset = 1;  // halving and doubling
  double multiplier = 2;
};

struct TreeState {
  enum class Role : uint8_t { kLeaf, kInner, kRoot } role = Role::kLeaf;
  int step = 0;
  int came = 0;  // messages
  int64_t bytes = 0;
  int64_t parent = -1;  // indices of members
  int64_t child[2] = {-1, -1};
};

// State of a collective that is defined by a program.
struct ProgramState {
  const SimRank* rank = nullptr;
  const std::vector<int64_t>* group = nullptr;  // its members are the program's ranks; null: all
  static constexpr uint32_t kDone = UINT32_MAX;
  std::vector<uint32_t>
      waits;        // number of unfinished dependencies, by node; kDone: the node is done
  size_t left = 0;  // unfinished nodes; 0 before the program begins
};

// A chunk of a collective on one rank.
struct CollectiveStream {
  SimIndex id = 0;
  RankClassId rank_class;
  SimIndex node = 0;  // index in the class's program
  SimIndex data_set = 0;
  int64_t tag = 0;
  int64_t priority = 0;
  SimChain chain;         // up to its arrival in the queue
  CollectivePhase phase;  // current phase
  const class StreamAlgorithm* algorithm = nullptr;
  std::vector<CollectivePhase> phases;  // all phases
  SimIndex begun = 0;                   // number of phases begun
  int64_t exchanges = 0;
  ExchangeState exchange;
  TreeState tree;
  ProgramState custom;
  const struct PlanProgram* plan = nullptr;  // of the collective; nullptr: none
};

// Actions available to a StreamAlgorithm.
class StreamActions {
 public:
  virtual ~StreamActions() = default;
  // Sends to or receives from a rank. With rank classes, messages that have an ordinal are matched
  // by it.
  virtual void Send(const CollectiveStream& stream, int64_t target, int64_t bytes,
                    int64_t ordinal) = 0;
  virtual void Receive(const CollectiveStream& stream, int64_t source, int64_t bytes,
                       int64_t ordinal) = 0;
  // Starts the handling of the rank's own data or of a message; StreamAlgorithm::Handled follows.
  virtual void Handle(const CollectiveStream& stream, const Handling& handling) = 0;
  // Waits until all members of the phase have done so. Then the switches transfer their data, and
  // StreamAlgorithm::MessageCame follows on all of them.
  virtual void JoinMembers(const CollectiveStream& stream) = 0;
  // Ends the phase. Must be the algorithm's last action: the stream may be gone afterwards.
  virtual void EndPhase(CollectiveStream& stream) = 0;
};

// Message exchange of a phase, from the view of one rank.
class StreamAlgorithm {
 public:
  virtual ~StreamAlgorithm() = default;
  virtual void Start(CollectiveStream& stream, StreamActions& actions) const = 0;
  virtual void Handled(CollectiveStream& stream, StreamActions& actions) const = 0;
  virtual void MessageCame(CollectiveStream& stream, StreamActions& actions) const = 0;
};

const StreamAlgorithm& AlgorithmOf(const CollectivePhase& phase);

}  // namespace etude
