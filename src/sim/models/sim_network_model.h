#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "src/sim/engine/sim_input.h"
#include "src/sim/engine/sim_timeline.h"
#include "src/sim/engine/simulator.h"

namespace etude {

// How long messages are on their way. A model plans events kArrival of messages and kLinkFree of
// links.
class SimNetworkModel {
 public:
  virtual ~SimNetworkModel() = default;
  virtual std::string_view name() const = 0;

  // A message starts on its way between two NPUs. Of this the result takes no longer than the
  // whole; the rest is for links that carry others or are slow.
  virtual Travel::Parts Send(SimIndex message, int64_t from, int64_t to, int64_t bytes) = 0;
  // The message is somewhere. True: at its end; else it moves on.
  virtual bool Arrive(SimIndex message) = 0;
  virtual void FreeLink(SimIndex link) = 0;

  // What was sent so far on links that were used.
  virtual std::vector<SimLinkUse> Links() const = 0;
};

// "astra-sim-2.0/analytical-unaware" or, with congestion, "astra-sim-2.0/analytical-aware", which
// has one dimension.
std::unique_ptr<SimNetworkModel> MakeSimNetworkModel(const SimInput& input, SimTimeline& timeline);

}  // namespace etude
