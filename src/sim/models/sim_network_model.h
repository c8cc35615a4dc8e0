#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "src/sim/engine/sim_input.h"
#include "src/sim/engine/sim_timeline.h"
#include "src/sim/engine/simulator.h"

namespace etude {

// Data of all members of a collective's phase that switches reduce or multicast.
struct SwitchTransfer {
  CollectiveType type = CollectiveType::kUnknown;
  std::vector<int64_t> members;  // ranks
  int64_t root = 0;              // index of a member
  int64_t bytes = 0;             // of the collective, as on the members
};

// Transport of messages. A model plans events of kind kArrival for messages and kLinkFree for
// links.
class SimNetworkModel {
 public:
  virtual ~SimNetworkModel() = default;
  virtual std::string_view name() const = 0;

  // Starts a message between two NPUs. Returns its minimum times; any further time is due to busy
  // or slow links.
  virtual Travel::Parts Send(SimIndex message, int64_t from, int64_t to, int64_t bytes) = 0;
  // Starts a transfer by switches; otherwise like Send. Its only arrival is that of all data at all
  // members. kBadInput if no switches connect the members.
  virtual Result<Travel::Parts> SendBySwitches(SimIndex /*message*/,
                                               const SwitchTransfer& /*transfer*/) {
    return BadInput("found no switches in the model of the network");
  }
  // Handles an arrival of the message. Returns true at its destination; otherwise the message moves
  // on.
  virtual bool Arrive(const SimEvent& event) = 0;
  virtual void FreeLink(const SimEvent& event) = 0;

  // Returns the traffic so far, of used links.
  virtual std::vector<SimLinkUse> Links() const = 0;
};

// Makes "astra-sim-2.0/analytical-unaware" or, with congestion, "astra-sim-2.0/analytical-aware",
// which has a single dimension; for a machine with a graph "etude-1/flows".
std::unique_ptr<SimNetworkModel> MakeSimNetworkModel(const SimInput& input, SimTimeline& timeline,
                                                     TieWatch& ties);

}  // namespace etude
