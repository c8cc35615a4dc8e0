#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/standalone/program.h"

namespace etude {

// What the code of a step works on (docs/formats/benchmark_data.md), as text: forms of tensors, the
// memory that is there before the step, and the tables of the code.
std::string ProgramData(const Program& program, const std::vector<std::vector<int32_t>>& tables);

// The gaps between its calls, as text; "" where they are unknown.
std::string GapData(const Program& program);

}  // namespace etude
