#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "src/sim/engine/sim_input.h"
#include "src/sim/engine/sim_timeline.h"

namespace etude {

// What a rank does with what it has at the start of a collective, or with a message that has come.
struct Handling {
  int64_t bytes = 0;
  bool came = false;
  bool reduces = false;  // what came is added to what the rank has
  bool goes_on = false;  // what came, or the sum, is sent on
};

class HandlingListener {
 public:
  virtual ~HandlingListener() = default;
  // Of an event kHandled.
  virtual void Handled(const LocalEvent& event) = 0;
};

// What messages of collectives cost at the ends of their way.
class SimEndpointModel {
 public:
  virtual ~SimEndpointModel() = default;
  virtual std::string_view name() const = 0;

  // A rank begins to handle something for a stream. At the end `handled`, of kind kHandled, comes,
  // or the listener is told of it.
  virtual void Handle(RankClassId rank_class, bool in_group, const Handling& handling,
                      const LocalEvent& handled) = 0;
  // An event of the model's own.
  virtual void Do(RankClassId rank_class, const LocalEvent& event) = 0;
};

// Of adding what came to what the rank has, ns: two operands are read and the sum is written.
int64_t ReductionTime(const SystemModel& system, int64_t bytes);

// "astra-sim-2.0/endpoint-delay" or "astra-sim-2.0/shared-bus".
std::unique_ptr<SimEndpointModel> MakeSimEndpointModel(const SimInput& input, SimTimeline& timeline,
                                                       TieWatch& ties, HandlingListener& listener);

}  // namespace etude
