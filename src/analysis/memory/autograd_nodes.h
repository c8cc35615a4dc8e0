#pragma once

#include <vector>

#include "src/run/step/recorded_step.h"

namespace etude {

// By position in the step: whether the operator made nodes for a backward pass, of itself or of
// operators that it called. PyTorch numbers these by thread and writes with each operator, in its
// `seq_id`, the number of the next one to be made (c10/core/SequenceNumber.h): an operator made
// some if one inside it or the one after it has a higher number, or, if there is none, if a
// backward function of that number ran. A function of Python's makes one as well, and says its
// number. Without such numbers no operator did.
std::vector<bool> MadeAutogradNodes(const RecordedStep& step);

}  // namespace etude
