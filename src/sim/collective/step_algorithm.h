#pragma once

#include <cstdint>
#include <vector>

#include "src/sim/collective/collective_stream.h"

namespace etude {

// Messages that a member sends and receives in a step of a collective. Members are indices.
struct PhaseStep {
  struct Message {
    int64_t member = 0;
    int64_t bytes = 0;

    friend bool operator==(const Message&, const Message&) = default;
  };
  std::vector<Message> sends;
  std::vector<Message> receives;
  bool reduces = false;  // what is received is added to the member's own data
};

// Returns the number of steps of a phase, which all members have, and a member's step.
// `phase.choice` is an algorithm in steps (IsInSteps).
int64_t StepCountOf(const CollectivePhase& phase);
PhaseStep StepOf(const CollectivePhase& phase, int64_t step);

// Returns whether the algorithm of a phase is one of those that only graphs have (etude-1):
// docs/models/etude_1.md.
bool IsInSteps(const CollectivePhase& phase);

// Exchange in steps. A step begins when all messages of the one before have been received and
// handled.
class StepAlgorithm final : public StreamAlgorithm {
 public:
  void Start(CollectiveStream& stream, StreamActions& actions) const override;
  void Handled(CollectiveStream& stream, StreamActions& actions) const override;
  void MessageCame(CollectiveStream& stream, StreamActions& actions) const override;
};

}  // namespace etude
