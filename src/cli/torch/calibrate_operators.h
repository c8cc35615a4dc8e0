#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/exit_code.h"
#include "src/base/result.h"
#include "src/cli/app/command.h"

namespace etude {

// `etude calibrate --operators`.
struct OperatorCalibration {
  std::string job;          // trace or capture folder
  std::string output;       // table, which keeps its rows
  std::string in = "step";  // or "isolation"
  int64_t rounds = 0;       // at most
  std::optional<int64_t> threads;
  int64_t at_once = 1;  // processes that run the step at the same time
  std::vector<std::string> libraries;
  bool force = false;
  bool json = false;
};

// Measures the operators of all ranks of a job, writes the table after each rank and each kind of
// step, and prints the answer. ExitCode::kNo if an operator is too noisy to be written.
Result<ExitCode> CalibrateOperators(const OperatorCalibration& wanted, const Console& console);

}  // namespace etude
