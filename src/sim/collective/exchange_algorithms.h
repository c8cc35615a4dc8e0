#pragma once

#include "src/sim/collective/collective_stream.h"

namespace etude {

// Ranks that send to others in turn, and carry on what comes: the ring, direct exchanges, and
// halving and doubling.
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
  // The state is that of a ring.
  virtual void Prepare(const CollectivePhase& phase, ExchangeState& state) const = 0;
  // To the next packet's partners.
  virtual void Advance(const CollectivePhase& phase, ExchangeState& state) const = 0;
  // In the second half of an all-reduce all sums must be there before the first is sent.
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
