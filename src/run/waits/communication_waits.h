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

// Point at which a program waited for a communication that it had begun. Indices refer to a list of
// operators.
struct CommunicationWait {
  uint32_t communication = 0;
  uint32_t before = 0;         // index of the next operator; the number of operators at the
                               // step's end
  std::optional<Nanos> until;  // end of the communication, if known

  friend bool operator==(const CommunicationWait&, const CommunicationWait&) = default;
};

// Returns a wait for each of `operators` (operators of the step in order of entry) that returned a
// c10d Work. The program waited at once if `async_op` is false; at the latest before the first
// operator that uses its memory or has a sync dependency on it, or at the end of the step. Gloo
// ends the label of a send or receive when the program has waited for it, so that wait was before
// the next operator. Labels belong to the operator stated in native captures, in other traces to
// their caller.
std::vector<CommunicationWait> FindCommunicationWaits(const RecordedStep& step,
                                                      const DataFlow& flow,
                                                      std::span<const NodeId> operators);

// Returns the time of the step in which the program only waited: from the end of the operator
// before each wait to the end of the communication, or to the begin of the next operator if the end
// is unknown or later. Operators without times have none.
TimeSet TimesOf(std::span<const CommunicationWait> waits, const RecordedStep& step,
                std::span<const NodeId> operators);

}  // namespace etude
