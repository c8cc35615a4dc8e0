#pragma once

#include <vector>

#include "src/run/step/recorded_step.h"

namespace etude {

// Returns, by position in the step, whether the operator, or one that it called, created nodes for
// a backward pass. PyTorch numbers these per thread, and writes the number of the next one in the
// `seq_id` of each operator (c10/core/SequenceNumber.h). An operator created some if one inside it
// or the next one has a higher number or, if there is none, if a backward function of that number
// ran. A Python function (torch.autograd.Function) also creates one, and records its number. False
// for all operators without such numbers.
std::vector<bool> MadeAutogradNodes(const RecordedStep& step);

}  // namespace etude
