#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Measured factors of one task, from characterization.json. Unknown values are nullopt.
struct TaskFactors {
  struct Run {
    int64_t seed = 0;
    bool reached = false;
    std::optional<double> epochs;  // to the target
    std::optional<int64_t> steps;
    std::optional<int64_t> evaluate_every;  // steps
  };

  std::string task;
  std::string data_set;   // "" if unknown, or for tasks with one data set
  std::string optimizer;  // "adam 0.002"
  std::optional<int64_t> parameters;
  std::optional<int64_t> batch;
  std::optional<int64_t> samples;  // in the training set
  std::optional<double> step_seconds;
  std::optional<double> flop;                              // of a training step
  std::optional<double> bytes;                             // of a training step
  std::optional<std::map<std::string, double>> hot_spots;  // share of the time by category, 0..1
  std::optional<double> parallel_efficiency;               // 0..1
  std::optional<double> instructions;                      // hardware counters of a step
  std::optional<double> cycles;
  std::optional<double> cache_misses;
  std::optional<double> branch_misses;
  std::vector<Run> runs;
};

struct CharacterizedTasks {
  std::string path;
  std::string scale;
  std::vector<TaskFactors> tasks;
};

// Read or parse a file that `etude suite characterize` wrote
// (docs/formats/suite_characterization.md). kIo for an unreadable file; kBadInput for an invalid
// one, an unknown task, or a task that appears twice.
Result<CharacterizedTasks> ReadCharacterization(const std::string& path, const RunContext& context);
Result<CharacterizedTasks> ParseCharacterization(const std::string& path, std::string_view text,
                                                 const RunContext& context);

}  // namespace etude::suite
