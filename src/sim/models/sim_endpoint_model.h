#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "src/sim/engine/sim_input.h"
#include "src/sim/engine/sim_timeline.h"

namespace etude {

// Handling of a rank's own data at the start of a collective, or of a received message.
struct Handling {
  int64_t bytes = 0;
  bool came = false;
  bool reduces = false;  // received data are added to the rank's own
  bool goes_on = false;  // the data, or the sum, are forwarded
};

class HandlingListener {
 public:
  virtual ~HandlingListener() = default;
  // Handles an event of kind kHandled.
  virtual void Handled(const LocalEvent& event) = 0;
};

// Cost of collective messages at their endpoints.
class SimEndpointModel {
 public:
  virtual ~SimEndpointModel() = default;
  virtual std::string_view name() const = 0;

  // Begins a handling for a stream. At its end the event `handled`, of kind kHandled, occurs, or
  // the listener is called with it.
  virtual void Handle(RankClassId rank_class, bool in_group, const Handling& handling,
                      const LocalEvent& handled) = 0;
  // Handles an event of the model itself.
  virtual void Do(RankClassId rank_class, const LocalEvent& event) = 0;
};

// Returns the time to add received data, in ns: two operands are read and the sum is written.
int64_t ReductionTime(const SystemModel& system, int64_t bytes);

// Makes "astra-sim-2.0/endpoint-delay" or "astra-sim-2.0/shared-bus".
std::unique_ptr<SimEndpointModel> MakeSimEndpointModel(const SimInput& input, SimTimeline& timeline,
                                                       HandlingListener& listener);

}  // namespace etude
