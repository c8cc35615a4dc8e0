#include "src/cli/torch/replay_kinds.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "src/base/units.h"
#include "src/replay/calibration.h"
#include "src/replay/step_mix.h"
#include "src/run/step/recorded_step.h"
#include "src/torch/replayer.h"

namespace etude {
namespace {

// Returns a kind's step time, for a program whose steps take `mean` on average; nullopt if unknown.
std::optional<Nanos> ShareOf(const StepTimes& mean, const std::vector<StepKind>& kinds,
                             const StepKind& kind) {
  double steps = 0;
  double time = 0;
  for (const StepKind& one : kinds) {
    if (!one.time) return std::nullopt;
    steps += one.weight;
    time += *one.MeanTime() * one.weight;
  }
  if (!mean.wall || time <= 0) return std::nullopt;
  const auto whole = static_cast<double>(mean.wall->median.count);
  return Nanos{static_cast<int64_t>(whole * *kind.MeanTime() / (time / steps))};
}

}  // namespace

void TakeStep(const StepKind& kind, ReplayOptions& options) {
  options.step = options.group == nullptr ? kind.typical : kind.steps.front();
  options.alike = kind.steps;
}

Result<ReplayReport> ReplayEachKind(const ReplaySource& source, const std::vector<StepKind>& kinds,
                                    ReplayOptions options, const RunContext& context) {
  // All trials come first: after a run there are threads, which a child lacks.
  std::vector<std::optional<Calibration>> found;
  for (const StepKind& kind : kinds) {
    TakeStep(kind, options);
    ETUDE_ASSIGN_OR_RETURN(found.emplace_back(), Replayer::TryOut(source.trace, options, context));
  }
  // For the program's steps only the mean over kinds is known.
  options.minor_faults = std::nullopt;
  options.original_waiting = {};
  std::vector<ReplayedKind> replayed;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const StepKind& kind = kinds[i];
    TakeStep(kind, options);
    options.calibration = found[i] ? &*found[i] : nullptr;
    options.original_step = ShareOf(source.original_mix, kinds, kind);
    ETUDE_ASSIGN_OR_RETURN(ReplayReport report, Replay(source.trace, options, context));
    replayed.push_back({.step = static_cast<int64_t>(kind.typical),
                        .steps = static_cast<int64_t>(kind.steps.size()),
                        .recorded = kind.time,
                        .weight = kind.weight,
                        .report = std::move(report)});
  }
  return CombineKinds(std::move(replayed));
}

std::vector<KindSummary> WeightsOf(const std::vector<StepKind>& kinds, size_t step) {
  const std::vector<double> shares = KindTimeShares(kinds);
  double weight = 0;
  for (const StepKind& kind : kinds) weight += kind.weight;
  std::vector<KindSummary> rows;
  for (const StepKind& kind : kinds) {
    KindSummary row{.replayed = std::ranges::count(kind.steps, step) != 0,
                    .step = static_cast<int64_t>(kind.typical),
                    .steps = static_cast<int64_t>(kind.steps.size()),
                    .step_share = kind.weight / weight};
    if (!shares.empty()) row.time_share = shares[rows.size()];
    rows.push_back(std::move(row));
  }
  return rows;
}

Work WorkOfStep(const Trace& trace, const std::vector<StepKind>& kinds) {
  double all = 0;
  for (const StepKind& kind : kinds) all += kind.weight;
  std::map<size_t, double> of_steps;
  for (const StepKind& kind : kinds) {
    const double weight = kind.weight / all / static_cast<double>(kind.steps.size());
    for (const size_t step : kind.steps) of_steps[step] = weight;
  }
  std::vector<double> weights(trace.node_count(), 0);
  size_t marks = 0;
  for (const NodeId node : HostNodesById(trace)) {
    if (IsStepMark(trace.name(node))) ++marks;
    const auto weight = of_steps.find(marks == 0 ? 0 : marks - 1);
    if (weight != of_steps.end()) weights[node.index()] = weight->second;
  }
  return WorkOf(trace, weights);
}

}  // namespace etude
