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

// A rank of a capture beside its replay.
struct RankComparison {
  int64_t rank = 0;
  StepTimes original;
  StepTimes replay;
  std::optional<double> coverage_ops;
  std::optional<double> coverage_time;
  std::optional<double> same_kernels;
  std::optional<double> operator_time_difference;  // Σ|Δ time| / Σ recorded time, of operators
  std::optional<double> operator_share;
  int64_t skipped = 0;             // kinds of operators
  std::vector<std::string> notes;  // of the recording
  std::vector<int64_t> together;   // the ranks that were replayed with it; none: it was alone
};

// The file that `etude replay` leaves for `rank`: replay.N.json.
std::string ReplayFile(const CaptureFolder& folder, const CaptureRank& rank);

// Reads that file and job.json's step times. kBadInput if there is no such file, if it is none or
// of a part of the step, or if job.json has no facts of the rank.
Result<RankComparison> CompareWithReplay(const CaptureFolder& folder, const CaptureRank& rank);

// kBadInput if some were replayed together and others not: their times are not those of one job.
Status CheckReplayedTogether(const CaptureFolder& folder, std::span<const RankComparison> ranks);

// Times of steps, original and replay, and how much was replayed; of several ranks.
std::vector<Table> ReplayTables(const std::vector<RankComparison>& ranks);

}  // namespace etude
