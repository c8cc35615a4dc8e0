#pragma once

#include <vector>

#include "src/base/units.h"
#include "src/synth/network/network.h"
#include "src/synth/network/network_works.h"

namespace etude {

// Memory of layers in use beyond the next computation, by layer: results needed by backward or by a
// later layer, and other values needed by gradients.
struct NetworkMemory {
  std::vector<Bytes> made;            // allocated at the begin of the forward work
  std::vector<Bytes> freed_forward;   // released after the forward work
  std::vector<Bytes> freed_backward;  // released after the computation of the gradients
};

// Finds the memory of one pass of a micro-batch. For a denoising network the noise, which is made
// earlier, is only released here, and the sampled image is excluded.
NetworkMemory FindNetworkMemory(const Network& network, const NetworkCosts& costs,
                                NetworkPhase phase);

}  // namespace etude
