#pragma once

#include <optional>
#include <span>
#include <unordered_map>

#include "src/analysis/recorded_step.h"
#include "src/base/units.h"

namespace etude {

// When each of `collectives`, operators of the step, was over, as far as the trace says: the end of
// the last Gloo label that belongs to it. Native captures say to which operator a label belongs,
// other traces by its caller. Those without a label are not in the result.
std::unordered_map<NodeId, Nanos> CollectiveEnds(const RecordedStep& step,
                                                 std::span<const NodeId> collectives);

}  // namespace etude
