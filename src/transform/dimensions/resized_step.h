#pragma once

#include <cstdint>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/dimensions/step_dimensions.h"
#include "src/transform/dimensions/tensor_factors.h"

namespace etude {

struct ResizedStep {
  Trace trace;                   // with the nodes of the recorded one, in its order
  uint64_t resized = 0;          // operators whose tensors or numbers have other sizes
  uint64_t retimed = 0;          // nodes whose time follows from their work
  std::vector<bool> is_retimed;  // by node
};

// Gives the tensors of a step, and the sizes among the arguments of operators that make views and
// allocate memory, other sizes of factors. Times follow from work (WithTimesByWork).
Result<ResizedStep> ResizeStep(StepDimensions& dimensions, const TensorFactors::Sizes& sizes,
                               const Limits& limits);

}  // namespace etude
