#pragma once

#include "src/sim/collective/collective_stream.h"

namespace etude {

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

}  // namespace etude
