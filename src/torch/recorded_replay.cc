#include "src/torch/recorded_replay.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "src/analysis/compare/replay_match.h"
#include "src/analysis/time/time_summary.h"
#include "src/torch/replay_recording.h"

namespace etude {
namespace {

// Adds the time of each operator of the plan to its row of `times`: the topmost operators of a
// recorded replay, except those that convert results to recorded sizes.
void AddTimes(const ReplayedStep& step, const RecordedStep& replayed,
              std::vector<std::vector<Nanos>>& times) {
  const auto& ops = step.plan().ops;
  const Trace& trace = replayed.trace();
  size_t i = 0;
  for (const NodeId node : replayed.top_operators()) {
    if (i == ops.size()) break;
    if (OperatorNameOf(trace, node) != OperatorNameOf(step.trace(), ops[i].node)) continue;
    if (const auto time = trace.duration(node)) times[i].push_back(*time);
    ++i;
  }
}

// Returns the rows of operators by phase and name. Skipped operators have no time.
std::vector<OperatorTime> SumTimes(const ReplayedStep& step,
                                   const std::vector<std::vector<Nanos>>& times) {
  const RecordedStep& recorded = step.recorded();
  OperatorTimeSum sum;
  std::unordered_map<NodeId, Nanos> beside;  // by caller: time of operators beside it
  for (const auto& [caller, part] : step.selection().beside()) {
    if (const auto time = step.times().duration(part)) beside[caller] = beside[caller] + *time;
  }
  const auto add = [&](NodeId node, std::optional<Nanos> replayed) {
    std::optional<Nanos> own = step.times().duration(node);
    if (const auto found = beside.find(node); own && found != beside.end()) {
      own = *own - found->second;
    }
    sum.Add(PhaseAt(recorded, recorded.position(node)), OperatorNameOf(step.trace(), node), 1, own,
            replayed);
  };
  const auto& ops = step.plan().ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    add(ops[i].node, Median(times[i]));
  }
  for (const auto& skipped : step.selection().skipped()) add(skipped.node, Nanos{});
  for (const OwnCode& code : step.code_left_out()) {
    sum.Add(PhaseAt(recorded, recorded.position(code.node)),
            OperatorNameOf(step.trace(), code.node), 1, code.time, Nanos{});
  }
  return sum.Rows();
}

}  // namespace

Status CompareRecording(const ReplayedStep& step, const std::function<Status(int64_t index)>& run,
                        ReplayReport& report) {
  // In the first step the recorder's memory and caches are cold.
  const int64_t steps = 1 + std::clamp<int64_t>(step.options().iterations, 1, 3);
  ETUDE_ASSIGN_OR_RETURN(const std::optional<Trace> replayed,
                         RecordSteps(steps, run, step.options().recording, step.context()));
  if (!replayed || step.plan().ops.empty()) return {};
  std::vector<std::vector<Nanos>> times(step.plan().ops.size());
  for (int64_t i = 1; i < steps; ++i) {
    ETUDE_ASSIGN_OR_RETURN(const RecordedStep one,
                           RecordedStep::Select(*replayed, "", static_cast<size_t>(i)));
    AddTimes(step, one, times);
    if (i + 1 < steps) continue;
    report.kernels = MatchKernels(
        step.recorded(), step.selection().top(), one,
        [&](NodeId node) { return step.times().duration(node); }, step.code_left_out());
  }
  report.operator_times = SumTimes(step, times);
  return {};
}

}  // namespace etude
