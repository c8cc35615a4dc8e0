#pragma once

#include <cstddef>
#include <vector>

#include "src/analysis/compare/step_kinds.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/cli/torch/replay_source.h"
#include "src/replay/replay_report.h"
#include "src/torch/replay_options.h"
#include "src/trace/trace.h"

namespace etude {

// Lets `options` replay the step that stands for a kind; with other ranks, whose steps are chosen
// by themselves, its first.
void TakeStep(const StepKind& kind, ReplayOptions& options);

// Each kind of recorded steps, one after the other, as one report.
Result<ReplayReport> ReplayEachKind(const ReplaySource& source, const std::vector<StepKind>& kinds,
                                    ReplayOptions options, const RunContext& context);

// Of each kind of recorded steps for how many it stands; that of `step` is replayed.
std::vector<KindSummary> WeightsOf(const std::vector<StepKind>& kinds, size_t step);

// Of a recorded step, the mean of all kinds'.
Work WorkOfStep(const Trace& trace, const std::vector<StepKind>& kinds);

}  // namespace etude
