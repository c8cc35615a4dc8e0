#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/report/certificate/certificate.h"
#include "src/report/text/table.h"

namespace etude::suite {

// Standalone benchmark of a task, and its files.
struct TaskBenchmark {
  std::string task;
  std::string recording;    // capture folder
  std::string benchmark;    // folder written by `etude benchmark`
  std::string certificate;  // file
  bool kept = false;        // whether it was there already
  Certificate fidelity;     // contents of `certificate`

  // Returns whether all operators run and all bars are met.
  bool met() const;
};

// Returns the fidelity of the benchmarks, one row per task: coverage, and errors of the time and
// memory of a step with their 95 % intervals.
Table FidelityTable(const std::vector<TaskBenchmark>& benchmarks);
nlohmann::ordered_json ToJson(const TaskBenchmark& benchmark);

}  // namespace etude::suite
