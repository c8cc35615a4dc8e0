#pragma once

#include <cstdint>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/transform/dimensions/step_dimensions.h"
#include "src/transform/dimensions/tensor_factors.h"

namespace etude {

struct ResizedStep {
  Trace trace;           // with the nodes and times of the recorded one
  uint64_t resized = 0;  // operators whose tensors or numbers have other sizes
};

// Gives the tensors of a step, and the sizes among the arguments of operators that make views and
// allocate memory, other sizes of factors.
Result<ResizedStep> ResizeStep(StepDimensions& dimensions, const TensorFactors::Sizes& sizes,
                               const Limits& limits);

}  // namespace etude
