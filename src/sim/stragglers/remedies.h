#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/sim/stragglers/pipeline_stages.h"
#include "src/sim/stragglers/rank_variants.h"

namespace etude {

// A change of a job that may shorten its step, as SMon (2505.05713) proposes.
struct Remedy {
  std::string what;             // "stage re-balance"
  std::optional<int64_t> step;  // ns with it; nullopt: cannot be told from the job
  std::string basis;            // how the step was found, or why it cannot be told
};

// Part of a step that a pause of the host takes at least, to count for planned garbage collection.
inline constexpr double kLeastPause = 0.01;

// Simulates the remedies that fit the job, of which `step` is the own step in ns:
//
// * Stage re-balance: all computations of a stage take its time times the mean over all stages by
//   its own. The time of a stage is that of all its computations, as the mean over its ranks.
// * Sequence re-balance: computations whose FLOPs differ between ranks that do the same take their
//   mean time. Unknown without FLOPs.
// * Planned garbage collection: what times of labels and between operators take more than the lower
//   median of ranks that do the same, if it is at least as much again and kLeastPause of the step,
//   becomes one pause of all ranks at once, as long as that of the rank with the longest.
//
// Errors of RankVariants::StepOf.
Result<std::vector<Remedy>> FindRemedies(const PipelineStages& stages, int64_t step,
                                         RankVariants& times);

}  // namespace etude
