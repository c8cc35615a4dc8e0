#pragma once

#include "src/sim/collective/collective_stream.h"

namespace etude {

// Binomial tree below the phase's root: broadcasts and scatters go down, reduces and gathers up.
class BinomialTreeAlgorithm final : public StreamAlgorithm {
 public:
  void Start(CollectiveStream& stream, StreamActions& actions) const override;
  void Handled(CollectiveStream& stream, StreamActions& actions) const override;
  void MessageCame(CollectiveStream& stream, StreamActions& actions) const override;
};

// Barrier: each rank tells the one 1, 2, 4 … further that it is there, round by round.
class DisseminationAlgorithm final : public StreamAlgorithm {
 public:
  void Start(CollectiveStream& stream, StreamActions& actions) const override;
  void Handled(CollectiveStream& stream, StreamActions& actions) const override;
  void MessageCame(CollectiveStream& stream, StreamActions& actions) const override;
};

}  // namespace etude
