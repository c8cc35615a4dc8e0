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

// A recorded step on its way to being replayed: which of its operators run, each bound to its
// arguments, the plan of them, the memory they expect and what runs them. The parts refer to each
// other, so it stays where it is. Not thread-safe; refers to the trace and the context.
class ReplayedStep {
 public:
  ReplayedStep(const Trace& trace, ReplayOptions options, const RunContext& context,
               RecordedStep step, std::string device);
  ReplayedStep(const ReplayedStep&) = delete;
  ReplayedStep& operator=(const ReplayedStep&) = delete;

  // Chooses and binds the operators; those that cannot be bound are replaced by their parts or
  // skipped. kBadInput if one names a rank that is not there, kUsage if the parts of the step that
  // were asked for leave nothing that runs.
  Status Choose();
  // Takes `node` out, or puts the operators that it called in its place: false, and no change, if
  // these do not do all that it does.
  void Skip(NodeId node, std::string reason) { selection_.Skip(node, std::move(reason)); }
  bool UseParts(NodeId node);
  // Adds `part`, which `caller` called when it was recorded and, without a gradient to come, does
  // not call here: false, and no change, if it is chosen already or cannot be bound.
  bool RunBeside(NodeId caller, NodeId part);
  // Lets the operator run without the gradient to come that it had when it was recorded: false, and
  // no change, if it does.
  bool DropGradient(NodeId node) { return without_gradient_.insert(node).second; }
  // Gives the operator values that it can work with in place of computed ones: false, and no
  // change, if there are none or it was given them already.
  bool GiveValues(NodeId node);
  // Plans what is chosen; operators inside which memory was made that others read are replaced by
  // their parts where that brings the memory to light.
  Result<ReplayPlan> Plan();
  // Sets PyTorch's generators back, so that each step draws the same numbers, as the trial did.
  void Seed() const;
  // Gives a plan to the runner. kBadInput if it needs more memory than allowed.
  Status Load(ReplayPlan plan);
  Status PlanAndLoad();
  // Makes the memory that the step needs from outside: all of it, or all but the optimizer's state,
  // which programs make in their first step.
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
  // CPU time that making and filling memory took so far.
  Nanos fill_time() const { return fill_time_; }
  void AddFillTime(Nanos time) { fill_time_ = fill_time_ + time; }
  // What the machine could give before anything was made. Later it does not tell: what the trial
  // frees may stay with the process.
  std::optional<Bytes> free_at_start() const { return free_at_start_; }
  // The own code of operators that this torch does not know: those that they called run in their
  // place.
  const std::vector<OwnCode>& code_left_out() const { return code_left_out_; }
  // Why an operator whose parts run in its place cannot run itself; "" if it could.
  std::string WhyNotBound(NodeId node) const;
  // Whether the recorded time of an operator that cannot run is to pass.
  bool StandsIn(NodeId node) const { return NameIn(options_.stand_in, node); }
  // Compiled code that counts: none if only some operators do.
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
  std::unordered_set<NodeId> given_values_;  // operators that are given all that they demand
  std::vector<bool> made_nodes_;  // by position: nodes for a backward pass, when it was recorded
  std::unordered_set<NodeId> without_gradient_;
  std::unordered_map<NodeId, BoundOperator> bound_;
  std::vector<OwnCode> code_left_out_;
  std::optional<Bytes> free_at_start_;
  Nanos fill_time_;
};

}  // namespace etude
