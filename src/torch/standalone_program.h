#pragma once

#include <vector>

#include "src/base/result.h"
#include "src/standalone/program.h"
#include "src/torch/replayed_step.h"

namespace etude {

// Returns the replayed step as a program that needs neither the trace nor Etude. `coerce`: by
// operator, whether its results are resized to the recorded shape and type. `keep_names`: includes
// names of calling modules and text arguments outside of PyTorch's vocabulary. kUnavailable, with
// the name of an operator or argument that cannot be expressed.
Result<Program> MakeProgram(const ReplayedStep& step, const std::vector<bool>& coerce,
                            bool keep_names);

}  // namespace etude
