#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/sim/collective/collective_phases.h"
#include "src/sim/engine/sim_chain.h"
#include "src/sim/engine/sim_input.h"
#include "src/sim/models/sim_endpoint_model.h"

namespace etude {

// What the ring, the direct exchange, and halving and doubling keep of a phase.
struct ExchangeState {
  struct Packet {
    int64_t target = 0;
    int64_t source = 0;
    int64_t bytes = 0;
  };
  std::vector<Packet> packets;
  size_t first_packet = 0;
  int64_t bytes = 0;  // of the next message
  int64_t left = 0;   // messages to send
  int64_t free = 0;   // packets that can be sent
  int64_t received = 0;
  int64_t parallel = 1;  // packets at the start
  // After `parallel` packets that carry no sum come `reductions` that do, in turn.
  int64_t reductions = 0;
  int64_t plain_left = 0;
  int64_t reductions_left = 0;
  bool reducing = false;  // first half of an all-reduce
  int64_t target = 0;     // indices of members
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

// A collective that is a program.
struct ProgramState {
  const SimRank* rank = nullptr;
  static constexpr uint32_t kDone = UINT32_MAX;
  std::vector<uint32_t> waits;  // for so many others; kDone: is done
  size_t left = 0;              // nodes; 0 before it begins
};

// A chunk of a collective on a rank.
struct CollectiveStream {
  SimIndex id = 0;
  RankClassId rank_class;
  SimIndex node = 0;  // of the class's program
  SimIndex data_set = 0;
  int64_t tag = 0;
  int64_t priority = 0;
  SimChain chain;         // up to when it came to its queue
  CollectivePhase phase;  // where it is
  const class StreamAlgorithm* algorithm = nullptr;
  std::vector<CollectivePhase> phases;  // all
  SimIndex begun = 0;                   // of them
  int64_t exchanges = 0;
  ExchangeState exchange;
  TreeState tree;
  ProgramState custom;
};

// What an algorithm can do.
class StreamActions {
 public:
  virtual ~StreamActions() = default;
  // To and from ranks. What has an ordinal matches by it where ranks are classes.
  virtual void Send(const CollectiveStream& stream, int64_t target, int64_t bytes,
                    int64_t ordinal) = 0;
  virtual void Receive(const CollectiveStream& stream, int64_t source, int64_t bytes,
                       int64_t ordinal) = 0;
  // The rank handles what it has, or a message; then Handled.
  virtual void Handle(const CollectiveStream& stream, const Handling& handling) = 0;
  // The last of a phase: the stream may have gone.
  virtual void EndPhase(CollectiveStream& stream) = 0;
};

// How the ranks of a phase exchange messages: what one rank does.
class StreamAlgorithm {
 public:
  virtual ~StreamAlgorithm() = default;
  virtual void Start(CollectiveStream& stream, StreamActions& actions) const = 0;
  virtual void Handled(CollectiveStream& stream, StreamActions& actions) const = 0;
  virtual void MessageCame(CollectiveStream& stream, StreamActions& actions) const = 0;
};

const StreamAlgorithm& AlgorithmOf(CollectiveAlgorithm algorithm);

}  // namespace etude
