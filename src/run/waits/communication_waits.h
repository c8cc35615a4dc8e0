#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/container/intervals.h"
#include "src/base/units.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"

namespace etude {

// Where a program waited for a communication that it had begun. Indices are into a list of
// operators.
struct CommunicationWait {
  uint32_t communication = 0;
  uint32_t before = 0;         // the operator that came next; as many as there are: the step's end
  std::optional<Nanos> until;  // when the communication was over, as far as the trace says

  friend bool operator==(const CommunicationWait&, const CommunicationWait&) = default;
};

// For each of `operators`, some of the step's in order of entry, that c10d gave a Work for. It was
// waited for at once where it was called so (`async_op` false), at the latest before the first
// operator that uses its memory, or that says it waits (a dependency of synchronisation), or at the
// end of the step. Gloo ends the label of a send or receive when the program has waited for it, so
// these were waited for before the next operator. Native captures say to which operator a label
// belongs, other traces by its caller.
std::vector<CommunicationWait> FindCommunicationWaits(const RecordedStep& step,
                                                      const DataFlow& flow,
                                                      std::span<const NodeId> operators);

// The times of the step in which the program did no more than wait: from the end of the operator
// before each wait until it was over, or the next operator began; all of that time where the trace
// does not say when it was over. Operators without times have none.
TimeSet TimesOf(std::span<const CommunicationWait> waits, const RecordedStep& step,
                std::span<const NodeId> operators);

}  // namespace etude
