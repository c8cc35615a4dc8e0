#pragma once

#include <vector>

#include "src/base/result.h"
#include "src/standalone/program.h"
#include "src/torch/replayed_step.h"

namespace etude {

// The step as it is replayed, as a program that needs neither trace nor Etude. `coerce`: by
// operator, whether its results are resized to the recorded shape and type. `keep_names`: with the
// modules that call, and with texts among arguments that are not of PyTorch's vocabulary.
// kUnavailable if an operator or an argument cannot be written down, with its name.
Result<Program> MakeProgram(const ReplayedStep& step, const std::vector<bool>& coerce,
                            bool keep_names);

}  // namespace etude
