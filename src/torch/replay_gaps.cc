#include "src/torch/replay_gaps.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/analysis/collective_ends.h"

namespace etude {
namespace {

double ScaleOf(const ReplayedStep& step) {
  const Nanos recorded = step.times().step().value_or(Nanos{});
  const std::optional<Nanos> original = step.options().original_step;
  if (!original || *original >= recorded) return 1.0;
  return static_cast<double>(original->count) / static_cast<double>(recorded.count);
}

// By gap until when the recorded program waited for collectives in it. Where the trace does not say
// when a collective was over, all of the gap is a wait.
std::vector<std::optional<Nanos>> WaitedUntil(const ReplayedStep& step,
                                              std::span<const NodeId> operators) {
  constexpr Nanos kWholeGap{INT64_MAX};
  const auto waits = step.runner().WaitsBetween();
  std::vector<NodeId> collectives;
  for (const auto& one : waits) {
    for (const uint32_t index : one) collectives.push_back(operators[index]);
  }
  const auto ends = CollectiveEnds(step.recorded(), collectives);
  std::vector<std::optional<Nanos>> until(waits.size());
  for (size_t gap = 0; gap < waits.size(); ++gap) {
    for (const uint32_t index : waits[gap]) {
      const auto end = ends.find(operators[index]);
      const Nanos reached = end == ends.end() ? kWholeGap : end->second;
      until[gap] = until[gap] ? std::max(*until[gap], reached) : reached;
    }
  }
  return until;
}

}  // namespace

std::optional<ReplayGaps> FindReplayGaps(const ReplayedStep& step) {
  std::vector<NodeId> operators;
  for (const PlannedOp& op : step.plan().ops) operators.push_back(op.node);
  const RecordedStep& recorded = step.recorded();
  std::vector<NodeId> others(recorded.compiled_code().begin(), recorded.compiled_code().end());
  for (const auto& skipped : step.selection().skipped()) others.push_back(skipped.node);
  const std::unordered_set<NodeId> chosen(step.selection().top().begin(),
                                          step.selection().top().end());
  for (const NodeId node : recorded.top_operators()) {
    if (!chosen.contains(node)) others.push_back(node);
  }
  const std::vector<std::optional<Nanos>> waited_until = WaitedUntil(step, operators);
  std::optional<HostGaps> gaps =
      step.times().Gaps({.operators = operators, .others = others, .waited_until = waited_until});
  if (!gaps) return std::nullopt;
  ReplayGaps found{.gaps = std::move(*gaps), .scale = ScaleOf(step)};
  const auto shorten = [&](Nanos& gap) {
    gap = Nanos{static_cast<int64_t>(static_cast<double>(gap.count) * found.scale)};
  };
  for (Nanos& gap : found.gaps.before) shorten(gap);
  shorten(found.gaps.after);
  shorten(found.gaps.waits);
  Waiting waiting = step.options().original_waiting;
  waiting.time = std::max(Nanos{}, waiting.time - found.gaps.waits);
  MarkIdle(found.gaps, waiting);
  return found;
}

}  // namespace etude
