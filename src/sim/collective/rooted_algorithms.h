#pragma once

#include "src/sim/collective/collective_stream.h"

namespace etude {

// Binomial tree rooted at the phase's root. Broadcasts and scatters go down, reduces and gathers go
// up.
class BinomialTreeAlgorithm final : public StreamAlgorithm {
 public:
  void Start(CollectiveStream& stream, StreamActions& actions) const override;
  void Handled(CollectiveStream& stream, StreamActions& actions) const override;
  void MessageCame(CollectiveStream& stream, StreamActions& actions) const override;
};

// Dissemination barrier: in round i each rank notifies the rank 2^i further.
class DisseminationAlgorithm final : public StreamAlgorithm {
 public:
  void Start(CollectiveStream& stream, StreamActions& actions) const override;
  void Handled(CollectiveStream& stream, StreamActions& actions) const override;
  void MessageCame(CollectiveStream& stream, StreamActions& actions) const override;
};

}  // namespace etude
