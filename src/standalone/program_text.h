#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/standalone/program.h"

namespace etude {

// A program's step as source code. The tables are the same in all languages.
struct StepText {
  std::string text;
  std::vector<std::vector<int32_t>> tables;  // numbers that no formula gives
  uint32_t calls = 0;                        // of operators that stand in it
};

// The file step.py for src/standalone/assets/benchmark.py, with the function `step(t)`.
StepText PythonStep(const Program& program);
// The file step.cc for src/standalone/assets/main.cc, with the function `void Step(Slots& t)`; it
// lacks the line that says which of the benchmark's steps it is.
StepText CppStep(const Program& program);

}  // namespace etude
