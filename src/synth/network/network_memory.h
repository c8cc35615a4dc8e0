#pragma once

#include <vector>

#include "src/base/units.h"
#include "src/synth/network/network.h"
#include "src/synth/network/network_works.h"

namespace etude {

// What layers make that is in use for longer than the next computation: results that backward needs
// or that a later layer uses too, and what gradients need beside them. By layer.
struct NetworkMemory {
  std::vector<Bytes> made;            // in use from the beginning of the forward work on
  std::vector<Bytes> freed_forward;   // once the forward work is done
  std::vector<Bytes> freed_backward;  // once the gradients are computed
};

// Of one pass of a micro-batch. Of a network that denoises the noise, which is made before, is only
// freed here, and the image that sampling works on is left out.
NetworkMemory FindNetworkMemory(const Network& network, const NetworkCosts& costs,
                                NetworkPhase phase);

}  // namespace etude
