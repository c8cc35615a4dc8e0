#include "src/sim/collective/in_network_algorithm.h"

namespace etude {

void InNetworkAlgorithm::Start(CollectiveStream& stream, StreamActions& actions) const {
  stream.exchange.received = 0;
  actions.Handle(stream, {.bytes = stream.phase.bytes});
}

void InNetworkAlgorithm::MessageCame(CollectiveStream& stream, StreamActions& actions) const {
  const CollectivePhase& phase = stream.phase;
  ++stream.exchange.received;
  actions.Handle(stream,
                 {.bytes = DataAfter(phase.type, phase.bytes, phase.members.count), .came = true});
}

void InNetworkAlgorithm::Handled(CollectiveStream& stream, StreamActions& actions) const {
  if (stream.exchange.received > 0) return actions.EndPhase(stream);
  actions.JoinMembers(stream);
}

}  // namespace etude
