#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/standalone/program.h"

namespace etude {

// Returns the data of a step's code as text (docs/formats/benchmark_data.md): tensor forms, memory
// that exists before the step, and the code's tables.
std::string ProgramData(const Program& program, const std::vector<std::vector<int32_t>>& tables);

// Returns the gaps between its calls as text; "" if unknown.
std::string GapData(const Program& program);

}  // namespace etude
