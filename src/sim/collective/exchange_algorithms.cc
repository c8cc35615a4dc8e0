#include "src/sim/collective/exchange_algorithms.h"

#include <algorithm>
#include <bit>

namespace etude {
namespace {

// Base of algorithms in which ranks send to others in turn and forward what they receive: ring,
// direct exchange, and halving and doubling.
class ExchangeAlgorithm : public StreamAlgorithm {
 public:
  void Start(CollectiveStream& stream, StreamActions& actions) const final;
  void Handled(CollectiveStream& stream, StreamActions& actions) const final;
  void MessageCame(CollectiveStream& stream, StreamActions& actions) const final;

 protected:
  static int64_t Around(int64_t index, int64_t by, int64_t count) {
    return ((index + by) % count + count) % count;
  }
  static int64_t WayOf(const CollectivePhase& phase) { return phase.backward ? -1 : 1; }

 private:
  // Initializes the state, which on entry is set up for a ring.
  virtual void Prepare(const CollectivePhase& phase, ExchangeState& state) const = 0;
  // Moves on to the partners of the next packet.
  virtual void Advance(const CollectivePhase& phase, ExchangeState& state) const = 0;
  // Returns whether, in the second half of an all-reduce, all sums must be complete before the
  // first is sent.
  virtual bool SendsSumsTogether() const { return false; }

  void Insert(CollectiveStream& stream, StreamActions& actions) const;
  static void SendPacket(CollectiveStream& stream, StreamActions& actions);
};

class RingAlgorithm final : public ExchangeAlgorithm {
 private:
  void Prepare(const CollectivePhase& phase, ExchangeState& state) const override;
  void Advance(const CollectivePhase& phase, ExchangeState& state) const override;
};

class DirectAlgorithm final : public ExchangeAlgorithm {
 private:
  void Prepare(const CollectivePhase& phase, ExchangeState& state) const override;
  void Advance(const CollectivePhase& phase, ExchangeState& state) const override;
  bool SendsSumsTogether() const override { return true; }
};

class HalvingDoublingAlgorithm final : public ExchangeAlgorithm {
 private:
  void Prepare(const CollectivePhase& phase, ExchangeState& state) const override;
  void Advance(const CollectivePhase& phase, ExchangeState& state) const override;
  static void FindPartner(const CollectivePhase& phase, ExchangeState& state);
};

void ExchangeAlgorithm::Start(CollectiveStream& stream, StreamActions& actions) const {
  const CollectivePhase& phase = stream.phase;
  ExchangeState& state = stream.exchange;
  const int64_t p = phase.members.count;
  const int64_t way = WayOf(phase);
  state.packets.clear();
  state.first_packet = 0;
  state.free = state.plain_left = state.reductions_left = state.received = 0;
  state.reducing = false;
  state.parallel = 1;
  state.reductions = p - 1;
  state.target = Around(phase.members.me, way, p);
  state.source = Around(phase.members.me, -way, p);
  state.bytes = phase.type == CollectiveType::kAllGather ? phase.bytes : phase.bytes / p;
  state.left = phase.type == CollectiveType::kAllReduce ? 2 * (p - 1) : p - 1;
  Prepare(phase, state);
  const int64_t parallel = state.parallel;
  for (int64_t i = 0; i < parallel; ++i) Insert(stream, actions);
}

// Adds a message that can be sent once its data are handled.
void ExchangeAlgorithm::Insert(CollectiveStream& stream, StreamActions& actions) const {
  const CollectivePhase& phase = stream.phase;
  ExchangeState& state = stream.exchange;
  if (state.plain_left == 0 && state.reductions_left == 0) {
    state.plain_left = state.parallel;
    state.reductions_left = state.reductions;
    state.reducing = !state.reducing;
  }
  state.packets.push_back({.target = phase.members.RankAt(state.target),
                           .source = phase.members.RankAt(state.source),
                           .bytes = state.bytes});
  const bool sums = phase.type == CollectiveType::kReduceScatter ||
                    (phase.type == CollectiveType::kAllReduce && state.reducing);
  const bool came = state.plain_left == 0;
  actions.Handle(stream, {.bytes = state.bytes,
                          .came = came,
                          .reduces = came && sums,
                          .goes_on = came && state.reductions_left > state.parallel});
  --(came ? state.reductions_left : state.plain_left);
  Advance(phase, state);
}

void ExchangeAlgorithm::MessageCame(CollectiveStream& stream, StreamActions& actions) const {
  ++stream.exchange.received;
  Insert(stream, actions);
}

void ExchangeAlgorithm::Handled(CollectiveStream& stream, StreamActions& actions) const {
  const CollectivePhase& phase = stream.phase;
  ExchangeState& state = stream.exchange;
  ++state.free;
  const int64_t others = phase.members.count - 1;
  if (SendsSumsTogether() && phase.type == CollectiveType::kAllReduce && state.left <= others) {
    if (state.received < others) return;
    for (int64_t i = 0; i < state.parallel; ++i) SendPacket(stream, actions);
  } else {
    SendPacket(stream, actions);
  }
  if (state.left == 0 && state.free == state.parallel) actions.EndPhase(stream);
}

void ExchangeAlgorithm::SendPacket(CollectiveStream& stream, StreamActions& actions) {
  ExchangeState& state = stream.exchange;
  if (state.first_packet == state.packets.size() || state.left == 0 || state.free == 0) return;
  const ExchangeState::Packet packet = state.packets[state.first_packet++];
  if (state.first_packet == state.packets.size()) {
    state.packets.clear();
    state.first_packet = 0;
  }
  --state.left;
  --state.free;
  const int64_t ordinal = ++stream.exchanges;
  actions.Send(stream, packet.target, packet.bytes, ordinal);
  actions.Receive(stream, packet.source, packet.bytes, ordinal);
}

void RingAlgorithm::Prepare(const CollectivePhase& phase, ExchangeState& state) const {
  const int64_t p = phase.members.count;
  if (phase.type == CollectiveType::kAllToAll) state.left = p * (p - 1) / 2;
}
void RingAlgorithm::Advance(const CollectivePhase& /*phase*/, ExchangeState& /*state*/) const {}

void DirectAlgorithm::Prepare(const CollectivePhase& phase, ExchangeState& state) const {
  const int64_t others = phase.members.count - 1;
  state.parallel = std::min(phase.choice.window.value_or(others), others);
  state.reductions = state.parallel * (phase.in_group ? others : 1);
}
void DirectAlgorithm::Advance(const CollectivePhase& phase, ExchangeState& state) const {
  const PhaseMembers& members = phase.members;
  const int64_t way = WayOf(phase);
  state.target = Around(state.target, way, members.count);
  if (state.target == members.me) state.target = Around(state.target, way, members.count);
  state.source = Around(state.source, -way, members.count);
  if (state.source == members.me) state.source = Around(state.source, -way, members.count);
}

void HalvingDoublingAlgorithm::Prepare(const CollectivePhase& phase, ExchangeState& state) const {
  const int64_t p = phase.members.count;
  const auto depth = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(p)) - 1);
  state.left = phase.type == CollectiveType::kAllReduce ? 2 * depth : depth;
  state.reductions = depth - 1;
  const bool gathers = phase.type == CollectiveType::kAllGather;
  state.bytes = gathers ? phase.bytes : phase.bytes / 2;
  state.offset = gathers ? static_cast<double>(p) / 2 : 1;
  state.multiplier = gathers ? 0.5 : 2;
  FindPartner(phase, state);
}
void HalvingDoublingAlgorithm::Advance(const CollectivePhase& phase, ExchangeState& state) const {
  const auto move = [&] {
    state.offset *= state.multiplier;
    state.bytes = static_cast<int64_t>(static_cast<double>(state.bytes) / state.multiplier);
  };
  move();
  if (phase.type == CollectiveType::kAllReduce &&
      static_cast<int64_t>(state.offset) == phase.members.count) {
    state.multiplier = 0.5;
    move();
  }
  FindPartner(phase, state);
}
void HalvingDoublingAlgorithm::FindPartner(const CollectivePhase& phase, ExchangeState& state) {
  const PhaseMembers& members = phase.members;
  const auto offset = static_cast<int64_t>(state.offset);
  const bool ahead = offset == 0 || members.me / offset % 2 == 0;
  state.target = state.source = Around(members.me, ahead ? offset : -offset, members.count);
}

}  // namespace

const StreamAlgorithm& ExchangeAlgorithmOf(CollectiveAlgorithm algorithm) {
  static const RingAlgorithm ring;
  static const DirectAlgorithm direct;
  static const HalvingDoublingAlgorithm halving_doubling;
  switch (algorithm) {
    case CollectiveAlgorithm::kRing: return ring;
    case CollectiveAlgorithm::kDirect: return direct;
    case CollectiveAlgorithm::kHalvingDoubling: return halving_doubling;
    case CollectiveAlgorithm::kDoubleBinaryTree:
    case CollectiveAlgorithm::kInNetwork:
    case CollectiveAlgorithm::kBidirectionalRing:
    case CollectiveAlgorithm::kBruck:
    case CollectiveAlgorithm::kPat:
    case CollectiveAlgorithm::kSlicedAllReduce:
    case CollectiveAlgorithm::kBinomialTree:
    case CollectiveAlgorithm::kDissemination: break;
  }
  return ring;
}

}  // namespace etude
