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

// Runs of one task with different seeds, combined to one result.
struct Score {
  std::string task;
  bool reached = false;           // by all runs, except one dropped as the slowest
  std::optional<double> seconds;  // time to quality; nullopt if not reached
  std::optional<double> quality;  // median of the last values
  std::optional<double> target;
  std::optional<double> baseline;
  // Standard deviation / mean of the epochs to the target; from two runs on.
  std::optional<double> variation;
  std::optional<Convergence> convergence;  // nullopt in steps mode
  std::vector<RunRecord> runs;
};

// Combines runs; seconds are from OlympicMeanOf.
Score ScoreOf(std::vector<RunRecord> runs, std::span<const ConvergenceReference> references = {});

// Returns {"format": "etude-suite", "version": 1, "tasks": […]}: docs/formats/suite_run.md.
nlohmann::ordered_json ToJson(const std::vector<Score>& scores);

// Reads the complete runs in a folder's .json files, grouped by task, scale, mode, data set and
// settings, with the built-in references. kIo for an unreadable folder, kBadInput for invalid or
// missing runs.
Result<std::vector<Score>> ReadScores(const std::string& folder, const RunContext& context);

}  // namespace etude::suite
