#pragma once

#include "src/sim/collective/collective_stream.h"

namespace etude {

// Collective whose data the network's switches reduce and multicast. A member hands its data over
// once, and has its result when all members have theirs.
class InNetworkAlgorithm final : public StreamAlgorithm {
 public:
  void Start(CollectiveStream& stream, StreamActions& actions) const override;
  void Handled(CollectiveStream& stream, StreamActions& actions) const override;
  void MessageCame(CollectiveStream& stream, StreamActions& actions) const override;
};

}  // namespace etude
