#include "src/torch/step_trial.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "src/base/machine/process_usage.h"

namespace etude {
namespace {

bool IsInside(const RecordedStep& step, uint32_t position, uint32_t outer) {
  NodeId node = step.enclosing_operator(position);
  while (node && step.position(node) > outer) node = step.enclosing_operator(step.position(node));
  return node && step.position(node) == outer;
}

// Returns the recorded operators that ran during `node`, on its thread or on all.
enum class Threads : uint8_t { kOwn, kAll };
OperatorCounts RecordedOperators(const RecordedStep& step, NodeId node, Threads threads) {
  OperatorCounts counts;
  const uint32_t begin = step.position(node);
  for (uint32_t i = begin; i <= step.last_inside(begin); ++i) {
    const NodeId inner = step.nodes()[i];
    const bool own = step.trace().tid(inner) == step.trace().tid(node);
    if (threads == Threads::kOwn && !own) continue;
    if (!step.is_operator(i) || (i != begin && !IsInside(step, i, begin))) continue;
    ++counts[std::string(OperatorNameOf(step.trace(), inner))];
  }
  return counts;
}

bool Contains(const OperatorCounts& all, const OperatorCounts& part) {
  return std::ranges::all_of(part, [&](const auto& row) {
    const auto found = all.find(row.first);
    return found != all.end() && found->second >= row.second;
  });
}

// Returns whether the operator called others that it had not called when it was recorded.
bool DidMore(const ReplayedStep& step, NodeId node, const Observation& seen) {
  return step.devices().same_kind() &&
         !Contains(RecordedOperators(step.recorded(), node, Threads::kAll), seen.operators);
}

// Returns whether the operator behaved differently than recorded, for example due to autocast. On
// another device it may call others. Of the calls on threads of PyTorch's pool, any part may run on
// the observed thread here.
bool RanOtherwise(const ReplayedStep& step, NodeId node, const Observation& seen) {
  if (step.bound(node).communicates()) return false;
  if (seen.wrong_type || DidMore(step, node, seen)) return true;
  if (!step.devices().same_kind()) return false;
  return !Contains(seen.operators, RecordedOperators(step.recorded(), node, Threads::kOwn));
}

// Returns whether a gradient to come may have caused a failure or different behaviour. It cannot
// cause missing operators: hooks for saved tensors called these, and a replay has no hooks.
bool GradientMayBeWhy(const ReplayedStep& step, NodeId node, const Observation& seen) {
  if (step.bound(node).communicates()) return false;
  return !seen.failure.empty() || seen.wrong_type || DidMore(step, node, seen);
}

// Returns the operator called by `node` inside which `inner` ran; none for `node` itself.
NodeId CalleeAround(const RecordedStep& step, NodeId node, NodeId inner) {
  NodeId callee;
  for (NodeId around = inner; around != node;
       around = step.enclosing_operator(step.position(around))) {
    if (!around) return {};
    callee = around;
  }
  return callee;
}

// Returns the recorded operators that did not run; empty if others ran instead.
OperatorCounts Missing(OperatorCounts recorded, const OperatorCounts& seen) {
  for (const auto& [name, count] : seen) {
    const auto found = recorded.find(name);
    if (found == recorded.end() || found->second < count) return {};
    found->second -= count;
  }
  return recorded;
}

// Removes `part` from `all`. Returns false without a change if it is not contained.
bool TakeOut(const OperatorCounts& part, OperatorCounts& all) {
  if (!Contains(all, part)) return false;
  for (const auto& [name, count] : part) all[name] -= count;
  return true;
}

// Adds operators that others with kernels called in addition, did not call here, and whose results
// others read. Autograd does this when it copies memory that an operator overwrites and a gradient
// needs; a replay's operators have no gradient then. The copy runs after its caller: the memory is
// right, the values are not the overwritten ones.
std::vector<TrialVerdict> AddBeside(ReplayedStep& step,
                                    const std::vector<Observation>& observations) {
  std::vector<TrialVerdict> verdicts;
  if (!step.devices().same_kind()) return verdicts;
  const RecordedStep& recorded = step.recorded();
  std::unordered_map<NodeId, size_t> index;
  for (size_t i = 0; i < step.plan().ops.size(); ++i) index[step.plan().ops[i].node] = i;
  std::unordered_map<NodeId, OperatorCounts> missing;
  for (const HiddenResult& hidden : step.plan().hidden) {
    const NodeId callee = CalleeAround(recorded, hidden.maker, hidden.origin);
    if (!callee || step.bound(hidden.maker).communicates()) continue;
    auto [left, is_new] = missing.try_emplace(hidden.maker);
    if (is_new) {
      left->second = Missing(RecordedOperators(recorded, hidden.maker, Threads::kOwn),
                             observations[index.at(hidden.maker)].operators);
    }
    if (!TakeOut(RecordedOperators(recorded, callee, Threads::kOwn), left->second)) continue;
    if (!step.RunBeside(hidden.maker, callee)) continue;
    verdicts.push_back({recorded.position(callee), TrialVerdict::Action::kRunBeside, ""});
  }
  return verdicts;
}

// Decides the changes after an observed run: one round.
std::vector<TrialVerdict> Judge(ReplayedStep& step, const std::vector<Observation>& observations) {
  using Action = TrialVerdict::Action;
  std::vector<TrialVerdict> verdicts;
  const auto& ops = step.plan().ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    const NodeId node = ops[i].node;
    const uint32_t position = step.recorded().position(node);
    const Observation& seen = observations[i];
    const bool has_gradient = !ops[i].differentiated.empty();
    const bool has_failed = !seen.failure.empty() || seen.wrong_shape;
    if (has_failed && step.GiveValues(node)) {
      verdicts.push_back({position, Action::kGiveValues, ""});
    } else if (has_gradient && GradientMayBeWhy(step, node, seen) && step.DropGradient(node)) {
      verdicts.push_back({position, Action::kWithoutGradient, ""});
    } else if (!seen.failure.empty()) {
      const bool parts = step.UseParts(node);
      if (!parts) step.Skip(node, seen.failure);
      verdicts.push_back(
          {position, parts ? Action::kUseParts : Action::kSkip, parts ? "" : seen.failure});
    } else if (RanOtherwise(step, node, seen) && step.UseParts(node)) {
      verdicts.push_back({position, Action::kUseParts, ""});
    }
  }
  return verdicts.empty() ? AddBeside(step, observations) : verdicts;
}

// Adds the memory of collectives, which the trial skips, because they may change it.
void AddCollectives(const ReplayedStep& step, std::vector<uint32_t>& changed) {
  for (const PlannedOp& op : step.plan().ops) {
    if (!step.bound(op.node).communicates()) continue;
    for (const DataFlow::Use& use : step.flow().inputs(op.node)) {
      if (use.version) changed.push_back(use.version.value());
    }
  }
}

// Restricts libtorch to this thread during its lifetime. A started thread pool does not survive a
// fork: the child would wait forever for missing threads.
class OneThread {
 public:
  OneThread() : threads_(at::get_num_threads()) { at::set_num_threads(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { at::set_num_threads(threads_); }

  int threads_before() const { return threads_; }

 private:
  int threads_;
};

}  // namespace

std::vector<StorageVersion> Versions(const std::vector<uint32_t>& numbers) {
  std::vector<StorageVersion> versions;
  versions.reserve(numbers.size());
  for (const uint32_t number : numbers) versions.emplace_back(number);
  return versions;
}

Result<Calibration> TryOutInChild(ReplayedStep& step, Nanos& time) {
  const OneThread until_forked;
  ETUDE_RETURN_IF_ERROR(step.PlanAndLoad());
  ETUDE_RETURN_IF_ERROR(step.ProvideAllButState());
  const auto nodes = step.recorded().nodes();
  std::vector<TrialVerdict> deadly;
  constexpr int kDeaths = 16;
  for (int deaths = 0; deaths < kDeaths; ++deaths) {
    std::optional<ChildDeath> died;
    const Nanos begin = CpuTimeWithChildren();
    const auto answer = RunInChild(
        [&](const Announce& announce) -> Result<std::string> {
          at::set_num_threads(until_forked.threads_before());
          if (const auto free = step.free_at_start()) {
            LimitMemory(Bytes{free->count - step.memory().bytes()});
          }
          ETUDE_ASSIGN_OR_RETURN(const Calibration found, TryOutHere(step, announce));
          return Serialise(found);
        },
        died);
    time = time + (CpuTimeWithChildren() - begin);
    if (answer) {
      ETUDE_ASSIGN_OR_RETURN(Calibration found, ParseCalibration(*answer));
      found.deadly = std::move(deadly);
      return found;
    }
    if (!died || died->position >= nodes.size()) return tl::unexpected<Error>(answer.error());
    deadly.push_back({.position = died->position,
                      .action = TrialVerdict::Action::kSkip,
                      .reason = "killed the process: " + died->how});
    step.Skip(nodes[died->position], deadly.back().reason);
  }
  return MakeError(ErrorCode::kInternal, "too many operators crash the process");
}

Result<Calibration> TryOutHere(ReplayedStep& step, const Announce& announce) {
  constexpr int kRounds = 16;
  Calibration found;
  for (int round = 0; round < kRounds; ++round) {
    ETUDE_RETURN_IF_ERROR(step.PlanAndLoad());
    ETUDE_RETURN_IF_ERROR(step.ProvideAll());
    ETUDE_RETURN_IF_ERROR(step.memory().NoteContent());
    const auto& ops = step.plan().ops;
    step.Seed();
    ETUDE_ASSIGN_OR_RETURN(const std::vector<Observation> observations,
                           step.runner().RunObserved([&](size_t op) {
                             announce(step.recorded().position(ops[op].node));
                           }));
    announce(UINT32_MAX);
    std::vector<TrialVerdict> verdicts = Judge(step, observations);
    if (!verdicts.empty()) {
      found.rounds.push_back(std::move(verdicts));
      continue;
    }
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!observations[i].wrong_shape && !observations[i].wrong_type) continue;
      found.coerced.push_back(step.recorded().position(ops[i].node));
    }
    ETUDE_ASSIGN_OR_RETURN(const auto changed, step.memory().Changed());
    for (const StorageVersion version : changed) found.changed.push_back(version.value());
    AddCollectives(step, found.changed);
    return found;
  }
  return MakeError(ErrorCode::kInternal, "the replay did not settle");
}

Status FollowTrial(ReplayedStep& step, const Calibration& found) {
  const auto nodes = step.recorded().nodes();
  for (const auto& round : found.rounds) {
    ETUDE_RETURN_IF_ERROR(step.Plan());
    for (const TrialVerdict& verdict : round) {
      if (verdict.position >= nodes.size()) continue;
      const NodeId node = nodes[verdict.position];
      bool followed = true;
      switch (verdict.action) {
        case TrialVerdict::Action::kSkip: step.Skip(node, verdict.reason); break;
        case TrialVerdict::Action::kUseParts: followed = step.UseParts(node); break;
        case TrialVerdict::Action::kGiveValues: followed = step.GiveValues(node); break;
        case TrialVerdict::Action::kWithoutGradient: followed = step.DropGradient(node); break;
        case TrialVerdict::Action::kRunBeside:
          followed = step.RunBeside(step.recorded().enclosing_operator(verdict.position), node);
          break;
      }
      if (!followed) return MakeError(ErrorCode::kInternal, "cannot monitor the trial run");
    }
  }
  return step.PlanAndLoad();
}

}  // namespace etude
