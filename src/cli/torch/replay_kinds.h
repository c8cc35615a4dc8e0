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

// Selects the representative step of a kind in `options`; with other ranks the kind's first step,
// because ranks choose separately.
void TakeStep(const StepKind& kind, ReplayOptions& options);

// Replays each kind of recorded steps and returns a combined report.
Result<ReplayReport> ReplayEachKind(const ReplaySource& source, const std::vector<StepKind>& kinds,
                                    ReplayOptions options, const RunContext& context);

// Returns the weights of the kinds; the kind of `step` is the replayed one.
std::vector<KindSummary> WeightsOf(const std::vector<StepKind>& kinds, size_t step);

// Returns the mean work of a recorded step over all kinds.
Work WorkOfStep(const Trace& trace, const std::vector<StepKind>& kinds);

}  // namespace etude
