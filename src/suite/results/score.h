#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/results/reference_convergence.h"
#include "src/suite/results/run_record.h"

namespace etude::suite {

// The runs of one task, with different seeds, as one result.
struct Score {
  std::string task;
  bool reached = false;           // all of them, but for one that is dropped as the slowest
  std::optional<double> seconds;  // time to quality; unknown if it was not reached
  std::optional<double> quality;  // the median of the last ones
  std::optional<double> target;
  std::optional<double> baseline;
  // Standard deviation over mean of the epochs to the target; from two runs on.
  std::optional<double> variation;
  std::optional<Convergence> convergence;  // none in steps mode
  std::vector<RunRecord> runs;
};

// Seconds by `OlympicMeanOf`.
Score ScoreOf(std::vector<RunRecord> runs, std::span<const ConvergenceReference> references = {});

// {"format": "etude-suite", "version": 1, "tasks": […]}: docs/formats/suite_run.md.
nlohmann::ordered_json ToJson(const std::vector<Score>& scores);

// The complete runs in a folder, its .json files, by task, scale, mode, data set and settings,
// beside the references that are built in. kIo if the folder cannot be read, kBadInput for what is
// no run or if there is none.
Result<std::vector<Score>> ReadScores(const std::string& folder, const RunContext& context);

}  // namespace etude::suite
