#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/analysis/compare/replay_match.h"
#include "src/analysis/time/typical_times.h"
#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/base/units.h"
#include "src/replay/device_map.h"
#include "src/replay/operator_selection.h"
#include "src/replay/replay_plan.h"
#include "src/replay/values/outside_values.h"
#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"
#include "src/torch/bound_operator.h"
#include "src/torch/memory/outside_memory.h"
#include "src/torch/replay_options.h"
#include "src/torch/step_runner.h"

namespace etude {

// A recorded step in preparation for replay: the selected operators, bound to their arguments,
// their plan, memory and runner. The parts refer to each other, so the object cannot move. Not
// thread-safe; refers to the trace and the context.
class ReplayedStep {
 public:
  ReplayedStep(const Trace& trace, ReplayOptions options, const RunContext& context,
               RecordedStep step, std::string device);
  ReplayedStep(const ReplayedStep&) = delete;
  ReplayedStep& operator=(const ReplayedStep&) = delete;

  // Selects and binds the operators. Those that cannot be bound are replaced by their parts or
  // skipped. kBadInput for a missing rank, kUsage if the requested parts of the step contain
  // nothing that runs.
  Status Choose();
  // Skip removes `node`. UseParts replaces it by the operators that it called; returns false
  // without a change if these do not do all of its work.
  void Skip(NodeId node, std::string reason) { selection_.Skip(node, std::move(reason)); }
  bool UseParts(NodeId node);
  // Adds `part`, which `caller` called when it was recorded, but does not call here without a
  // gradient to come. Returns false without a change if `part` is already selected or cannot be
  // bound.
  bool RunBeside(NodeId caller, NodeId part);
  // Runs the operator without the gradient to come that it had when it was recorded. Returns false
  // without a change if it already does.
  bool DropGradient(NodeId node) { return without_gradient_.insert(node).second; }
  // Replaces computed inputs of the operator by valid values. Returns false without a change if
  // there are none or it already has them.
  bool GiveValues(NodeId node);
  // Plans the selected operators. Operators that contain memory read by others are replaced by
  // their parts if this makes the memory accessible.
  Result<ReplayPlan> Plan();
  // Resets PyTorch's generators, so that each step draws the same numbers as the trial.
  void Seed() const;
  // Loads a plan into the runner. kBadInput if it exceeds the memory limit.
  Status Load(ReplayPlan plan);
  Status PlanAndLoad();
  // Allocate the step's outside memory: all, or all but the optimizer's state, which programs make
  // in their first step.
  Status ProvideAll();
  Status ProvideAllButState();

  const Trace& trace() const { return trace_; }
  const RecordedStep& recorded() const { return step_; }
  const TypicalTimes& times() const { return times_; }
  const DataFlow& flow() const { return flow_; }
  const DeviceMap& devices() const { return devices_; }
  const OperatorSelection& selection() const { return selection_; }
  const BoundOperator& bound(NodeId node) const { return bound_.at(node); }
  const FillRule& rule(StorageVersion version) const { return rules_.of_versions[version.index()]; }
  const ReplayPlan& plan() const { return runner_.plan(); }
  const ReplayOptions& options() const { return options_; }
  const RunContext& context() const { return context_; }
  OutsideMemory& memory() { return memory_; }
  const OutsideMemory& memory() const { return memory_; }
  StepRunner& runner() { return runner_; }
  const StepRunner& runner() const { return runner_; }
  // Returns the CPU time spent so far on allocating and filling memory.
  Nanos fill_time() const { return fill_time_; }
  void AddFillTime(Nanos time) { fill_time_ = fill_time_ + time; }
  // Returns the machine's free memory before any allocation. A later value would be misleading,
  // because the process may retain memory freed by the trial.
  std::optional<Bytes> free_at_start() const { return free_at_start_; }
  // Returns the own code of operators that this torch lacks; the operators that they called run
  // instead.
  const std::vector<OwnCode>& code_left_out() const { return code_left_out_; }
  // Returns why an operator whose parts run instead cannot run itself; "" if it could.
  std::string WhyNotBound(NodeId node) const;
  // Returns whether the recorded time of an operator that cannot run shall pass.
  bool StandsIn(NodeId node) const { return NameIn(options_.stand_in, node); }
  // Returns the compiled code that counts; none if the step is restricted to some operators.
  std::span<const NodeId> compiled_code() const;

 private:
  std::vector<GivenValues> Given() const;
  void ApplyNames();
  Status CheckNotEmpty() const;
  bool NameIn(const std::vector<std::string>& names, NodeId node) const;
  Status Bind(NodeId node);
  bool ConsistsOfParts(NodeId node);
  Status Provide(bool with_state);
  void AddGradients(ReplayPlan& plan) const;
  Status CheckMemory(const ReplayPlan& plan) const;
  std::vector<OwnCode> FindCodeLeftOut() const;

  const Trace& trace_;
  ReplayOptions options_;
  const RunContext& context_;
  RecordedStep step_;
  TypicalTimes times_;
  DataFlow flow_;
  DeviceMap devices_;
  OperatorBinder binder_;
  OperatorSelection selection_;
  OutsideMemory memory_;
  StepRunner runner_;
  ValueRules rules_;
  std::unordered_set<NodeId>
      given_values_;              // operators that receive values for all of their demands
  std::vector<bool> made_nodes_;  // by position: created autograd nodes when recorded
  std::unordered_set<NodeId> without_gradient_;
  std::unordered_map<NodeId, BoundOperator> bound_;
  std::vector<OwnCode> code_left_out_;
  std::optional<Bytes> free_at_start_;
  Nanos fill_time_;
};

}  // namespace etude
