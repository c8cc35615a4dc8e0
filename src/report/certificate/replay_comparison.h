#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/formats/job/capture_folder.h"
#include "src/report/tables/step_times.h"
#include "src/report/text/table.h"

namespace etude {

// A rank of a capture and its replay.
struct RankComparison {
  int64_t rank = 0;
  StepTimes original;
  StepTimes replay;
  std::optional<double> coverage_ops;
  std::optional<double> coverage_time;
  std::optional<double> same_kernels;
  std::optional<double> operator_time_difference;  // Σ|Δ time| / Σ recorded time, over operators
  std::optional<double> operator_share;
  int64_t skipped = 0;             // number of operator kinds
  std::vector<std::string> notes;  // about the recording
  std::vector<int64_t> together;   // ranks that were replayed together; empty: a single rank
};

// Returns the file name of the rank's `etude replay` result: replay.N.json.
std::string ReplayFile(const CaptureFolder& folder, const CaptureRank& rank);

// Reads that file and the step times of job.json. kBadInput if the file is missing, invalid, or of
// a part of the step, or if job.json has no entry for the rank.
Result<RankComparison> CompareWithReplay(const CaptureFolder& folder, const CaptureRank& rank);

// Checks that all ranks were replayed together, or all alone. Otherwise kBadInput: their times are
// not comparable.
Status CheckReplayedTogether(const CaptureFolder& folder, std::span<const RankComparison> ranks);

// Returns tables of step times of original and replay, and of coverage.
std::vector<Table> ReplayTables(const std::vector<RankComparison>& ranks);

}  // namespace etude
