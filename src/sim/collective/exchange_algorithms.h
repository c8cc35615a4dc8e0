#pragma once

#include "src/sim/collective/collective_stream.h"

namespace etude {

// Returns an algorithm in which ranks send to others in turn and forward what they receive: ring,
// direct exchange, or halving and doubling. `algorithm` must be one of these.
const StreamAlgorithm& ExchangeAlgorithmOf(CollectiveAlgorithm algorithm);

}  // namespace etude
