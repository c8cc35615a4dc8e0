#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/standalone/program.h"

namespace etude {

// Source code of a program's step. The tables are the same in all languages.
struct StepText {
  std::string text;
  std::vector<std::vector<int32_t>> tables;  // numbers that follow no formula
  uint32_t calls = 0;                        // operator calls in the text
};

// Returns step.py for src/standalone/assets/benchmark.py, with the function `step(t)`.
StepText PythonStep(const Program& program);
// Returns step.cc for src/standalone/assets/main.cc, with the function `void Step(Slots& t)`,
// without the line that registers the step's number.
StepText CppStep(const Program& program);

}  // namespace etude
