#include "src/analysis/compare/step_kinds.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "src/base/container/hash.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/stats.h"

namespace etude {
namespace {

// Mixes an operator and the types and sizes of its arguments into a hash. Interned values are equal
// if their ids are.
uint64_t MixOperator(const Trace& trace, NodeId node, uint64_t hash) {
  hash = HashBytes(OperatorNameOf(trace, node), hash);
  const auto add = [&](TensorId tensor) {
    const TensorUse& use = trace.tensor(tensor);
    hash = HashMix(hash, use.type.value());
    hash = HashMix(hash, use.shape.value());
  };
  ForEachTensor(trace, trace.inputs(node), add);
  return hash;
}

struct CountedStep {
  uint64_t hash = 0;
  std::optional<Nanos> time;
  uint64_t first_id = 0;  // of the mark; nodes in the step have ids up to `last_id`
  uint64_t last_id = 0;
  uint64_t nodes = 0;
  bool has_work = false;
  bool counts = true;
};

// Removes steps that are not complete. A mark without nodes after it, as left by a profiler that is
// stopped after the loop, is not a step. If the recording was truncated or damaged, incomplete
// steps are removed too, because they would count as kinds of their own with wrong times. If all
// are incomplete, they stay.
void LeaveOutOthers(const Stats& met, std::vector<CountedStep>& steps) {
  for (CountedStep& step : steps) step.counts = step.has_work;
  if (met[Stat::kTruncated] != 0 && !steps.back().time) steps.back().counts = false;
  if (met[Stat::kMalformedElement] != 0) {
    for (CountedStep& step : steps) {
      // Missing ids belong to lost nodes.
      const bool is_whole = step.time && step.last_id - step.first_id < step.nodes;
      if (!is_whole) step.counts = false;
    }
  }
  if (std::ranges::any_of(steps, &CountedStep::counts)) return;
  for (CountedStep& step : steps) step.counts = true;
}

}  // namespace

std::vector<StepKind> FindStepKinds(const Trace& trace) {
  std::vector<CountedStep> steps;
  for (const NodeId node : HostNodesById(trace)) {
    const uint64_t id = trace.source_id(node);
    if (IsStepMark(trace.name(node))) {
      if (!steps.empty()) steps.back().last_id = id - 1;
      steps.push_back({.time = trace.duration(node), .first_id = id});
    }
    if (!steps.empty()) steps.back().last_id = id;
    if (!steps.empty()) ++steps.back().nodes;
    if (steps.empty()) continue;
    if (IsOperator(trace, node)) {
      steps.back().hash = MixOperator(trace, node, steps.back().hash);
      steps.back().has_work = true;
    } else if (!CompiledCode(trace.name(node)).empty()) {
      steps.back().has_work = true;
    }
  }
  if (steps.empty()) return {StepKind{.steps = {0}, .weight = 1}};
  LeaveOutOthers(trace.stats(), steps);

  std::vector<StepKind> kinds;
  std::unordered_map<uint64_t, size_t> by_hash;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].counts) continue;
    const auto [found, added] = by_hash.emplace(steps[i].hash, kinds.size());
    if (added) kinds.push_back({.time = Nanos{}});
    StepKind& kind = kinds[found->second];
    kind.steps.push_back(i);
    kind.weight += 1;
    kind.time =
        kind.time && steps[i].time ? std::optional(*kind.time + *steps[i].time) : std::nullopt;
  }
  for (StepKind& kind : kinds) {
    kind.typical = kind.steps.front();
    if (!kind.time) continue;
    std::vector<size_t> by_time = kind.steps;
    std::ranges::stable_sort(by_time, {}, [&](size_t i) { return *steps[i].time; });
    kind.typical = by_time[by_time.size() / 2];
  }
  return kinds;
}

std::optional<double> StepKind::MeanTime() const {
  if (!time) return std::nullopt;
  return static_cast<double>(time->count) / static_cast<double>(steps.size());
}

void WeighKinds(std::span<const double> step_weights, std::vector<StepKind>& kinds) {
  std::vector<double> weights;
  double all = 0;
  for (const StepKind& kind : kinds) {
    double weight = 0;
    for (const size_t step : kind.steps) {
      if (step >= step_weights.size()) return;
      weight += step_weights[step];
    }
    weights.push_back(weight);
    all += weight;
  }
  if (all <= 0) return;
  for (size_t i = 0; i < kinds.size(); ++i) kinds[i].weight = weights[i];
}

std::vector<double> KindTimeShares(std::span<const StepKind> kinds) {
  std::vector<double> shares;
  double all = 0;
  for (const StepKind& kind : kinds) {
    const std::optional<double> time = kind.MeanTime();
    if (!time) return {};
    shares.push_back(*time * kind.weight);
    all += shares.back();
  }
  if (all <= 0) return {};
  for (double& share : shares) share /= all;
  return shares;
}

const StepKind& MiddleKind(const std::vector<StepKind>& kinds) {
  std::vector<std::pair<double, const StepKind*>> by_time;
  double all = 0;
  for (const StepKind& kind : kinds) {
    if (!kind.time) return kinds.front();
    by_time.emplace_back(*kind.MeanTime(), &kind);
    all += kind.weight;
  }
  std::ranges::stable_sort(by_time, {}, [](const auto& entry) { return entry.first; });
  double below = 0;
  for (const auto& [time, kind] : by_time) {
    below += kind->weight;
    if (below > all / 2) return *kind;
  }
  return kinds.front();
}

}  // namespace etude
