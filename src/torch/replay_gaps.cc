#include "src/torch/replay_gaps.h"

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/base/container/intervals.h"
#include "src/base/units.h"
#include "src/run/waits/communication_waits.h"

namespace etude {
namespace {

double ScaleOf(const ReplayedStep& step) {
  const Nanos recorded = step.times().step().value_or(Nanos{});
  const std::optional<Nanos> original = step.options().original_step;
  if (!original || *original >= recorded) return 1.0;
  return static_cast<double>(original->count) / static_cast<double>(recorded.count);
}

// Returns the times in which the recorded program waited for communications, replayed or not.
TimeSet WaitTimes(const ReplayedStep& step, std::vector<NodeId> operators) {
  const RecordedStep& recorded = step.recorded();
  std::ranges::sort(operators, {}, [&](NodeId node) { return recorded.position(node); });
  return TimesOf(FindCommunicationWaits(recorded, step.flow(), operators), recorded, operators);
}

}  // namespace

std::optional<ReplayGaps> FindReplayGaps(const ReplayedStep& step) {
  std::vector<NodeId> operators;
  for (const PlannedOp& op : step.plan().ops) operators.push_back(op.node);
  const RecordedStep& recorded = step.recorded();
  std::vector<NodeId> others(recorded.compiled_code().begin(), recorded.compiled_code().end());
  for (const auto& skipped : step.selection().skipped()) {
    if (!step.StandsIn(skipped.node)) others.push_back(skipped.node);
  }
  const std::unordered_set<NodeId> chosen(step.selection().top().begin(),
                                          step.selection().top().end());
  for (const NodeId node : recorded.top_operators()) {
    if (!chosen.contains(node)) others.push_back(node);
  }
  std::vector<NodeId> all = operators;
  all.insert(all.end(), others.begin(), others.end());
  std::optional<HostGaps> gaps = step.times().Gaps(
      {.operators = operators, .others = others, .waits = WaitTimes(step, std::move(all))});
  if (!gaps) return std::nullopt;
  ReplayGaps found{.gaps = std::move(*gaps), .scale = ScaleOf(step)};
  const auto shorten = [&](Nanos& gap) { gap = Scaled(gap, found.scale); };
  for (Nanos& gap : found.gaps.before) shorten(gap);
  shorten(found.gaps.after);
  shorten(found.gaps.waits);
  Waiting waiting = step.options().original_waiting;
  waiting.time = std::max(Nanos{}, waiting.time - found.gaps.waits);
  MarkIdle(found.gaps, waiting);
  return found;
}

}  // namespace etude
