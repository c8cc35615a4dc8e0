#include "src/torch/replayed_step.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_set>

#include <ATen/Parallel.h>

#include "src/analysis/memory/autograd_nodes.h"
#include "src/base/machine/process_usage.h"
#include "src/replay/device_map.h"
#include "src/replay/values/gradients_to_come.h"
#include "src/replay/values/outside_values.h"
#include "src/replay/values/pinned_memory.h"
#include "src/torch/memory/program_heap.h"
#include "src/torch/replay_device.h"
#include "src/trace/words/operator_name.h"
#include "src/transform/operators/operator_class.h"

namespace etude {
namespace {

constexpr std::string_view kAskedFor = "skipped by --skip";

// Returns whether the operator called itself: its preceding changes, such as element types under
// autocast, then belong to the program.
bool CallsItself(const RecordedStep& step, NodeId node) {
  const Trace& trace = step.trace();
  return std::ranges::any_of(step.OperatorsBelow(node), [&](NodeId part) {
    return trace.op_schema(part) == trace.op_schema(node);
  });
}

}  // namespace

ReplayedStep::ReplayedStep(const Trace& trace, ReplayOptions options, const RunContext& context,
                           RecordedStep step, std::string device)
    : trace_(trace),
      options_(std::move(options)),
      context_(context),
      step_(std::move(step)),
      times_(step_, options_.label, options_.alike),
      flow_(step_),
      devices_(std::move(device)),
      binder_(step_, devices_, options_.group),
      selection_(step_, flow_),
      memory_(trace, devices_, options_.seed),
      runner_(trace, flow_, devices_) {}

Status ReplayedStep::Choose() {
  if (devices_.target_is_cpu())
    free_at_start_ = AvailableMemory();  // devices report their own memory
  FollowTensors();
  devices_.set_step_uses_device(UsesDevice(step_, flow_));
  at::set_num_threads(static_cast<int>(options_.threads));
  Seed();
  rules_ = InferFillRules(step_, flow_);
  if (options_.gradients) made_nodes_ = MadeAutogradNodes(step_);
  if (!devices_.target_is_cpu()) memory_.Pin(FindPinned(step_, flow_));
  ApplyNames();
  const std::vector<NodeId> nodes(selection_.nodes().begin(), selection_.nodes().end());
  for (const NodeId node : nodes) {
    const Status status = Bind(node);
    if (!status && status.error().code == ErrorCode::kBadInput) {
      return BadInput("node " + std::to_string(trace_.source_id(node)) + ", " +
                      std::string(OperatorNameOf(trace_, node)) + ": " + status.error().message);
    }
    if (!status && !UseParts(node)) selection_.Skip(node, status.error().message);
  }
  return CheckNotEmpty();
}

void ReplayedStep::Seed() const { SeedDevice(devices_.target(), options_.seed); }

bool ReplayedStep::NameIn(const std::vector<std::string>& names, NodeId node) const {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const std::string_view full = OperatorNameOf(trace_, node);
    return MeansOperator(name, full, IsCommOperator(full));
  });
}

void ReplayedStep::ApplyNames() {
  if (!options_.only.empty()) {
    selection_.Keep([&](NodeId node) { return NameIn(options_.only, node); });
  }
  const std::vector<NodeId> nodes(selection_.nodes().begin(), selection_.nodes().end());
  for (const NodeId node : nodes) {
    if (NameIn(options_.skip, node)) selection_.Skip(node, std::string(kAskedFor));
  }
}

Status ReplayedStep::CheckNotEmpty() const {
  if (!selection_.nodes().empty() || (options_.only.empty() && options_.skip.empty())) return {};
  std::string text;
  for (const std::string& name : options_.only) text += " --only " + name;
  for (const std::string& name : options_.skip) text += " --skip " + name;
  text = text.substr(1) + ": no operator of the step remains";
  const auto& skipped = selection_.skipped();
  const auto refused =
      std::ranges::find_if(skipped, [](const auto& one) { return one.reason != kAskedFor; });
  if (refused == skipped.end()) return MakeError(ErrorCode::kUsage, std::move(text));
  const std::string_view op = OperatorNameOf(trace_, refused->node);
  if (options_.group == nullptr && IsCommOperator(op)) {
    text += "; communication requires the other ranks (--ranks, or --peers in a replay)";
  } else {
    text += "; " + std::string(op) + ": " + refused->reason;
  }
  return MakeError(ErrorCode::kUsage, std::move(text));
}

// Binds `node` unless it is bound. The error message is the reason.
Status ReplayedStep::Bind(NodeId node) {
  if (bound_.contains(node)) return {};
  auto bound = binder_.Bind(node);
  if (!bound) return tl::unexpected<Error>(bound.error());
  bound_.emplace(node, *std::move(bound));
  return {};
}

// Returns whether the parts of `node` do all of its work: it consists of operators only, it called
// itself with changed arguments, or it is unknown here.
bool ReplayedStep::ConsistsOfParts(NodeId node) {
  const auto found = bound_.find(node);
  if (found != bound_.end()) return found->second.is_composite() || CallsItself(step_, node);
  return !binder_.IsRegistered(node) &&
         ReasonNotToRun(FullOperatorName(SchemaOf(trace_, node))).empty();
}

bool ReplayedStep::UseParts(NodeId node) {
  return ConsistsOfParts(node) &&
         selection_.UseParts(node, [&](NodeId part) { return Bind(part).has_value(); });
}

bool ReplayedStep::RunBeside(NodeId caller, NodeId part) {
  if (!Bind(part) || !selection_.RunBeside(caller, part)) return false;
  without_gradient_.insert({caller, part});
  return true;
}

void ReplayedStep::AddGradients(ReplayPlan& plan) const {
  PlanGradients(step_, flow_, made_nodes_, plan);
  // Copies that autograd makes inaccessibly for other readers are made beside the operator instead,
  // where readers find the memory.
  std::unordered_set<NodeId> keeps_for_others;
  for (const HiddenResult& hidden : plan.hidden) {
    if (hidden.origin != hidden.maker) keeps_for_others.insert(hidden.maker);
  }
  for (PlannedOp& op : plan.ops) {
    // Communications do not run in the trial, so it would not reveal errors.
    const bool is_tried = !bound(op.node).communicates();
    if (!is_tried || without_gradient_.contains(op.node) || keeps_for_others.contains(op.node)) {
      op.differentiated.clear();
    }
  }
}

bool ReplayedStep::GiveValues(NodeId node) {
  const uint32_t begin = step_.position(node);
  const bool demands = std::ranges::any_of(rules_.demanded, [&](const DemandedValues& values) {
    const uint32_t position = step_.position(values.node);
    return begin <= position && position <= step_.last_inside(begin) && !values.decides_size;
  });
  return demands && given_values_.insert(node).second;
}

// Returns values that determine the size of a result, and all values demanded by operators that
// would fail otherwise.
std::vector<GivenValues> ReplayedStep::Given() const {
  std::vector<GivenValues> given;
  for (const DemandedValues& values : rules_.demanded) {
    NodeId around = values.node;
    while (around && !given_values_.contains(around)) {
      around = step_.enclosing_operator(step_.position(around));
    }
    if (values.decides_size || around)
      given.push_back({values.node, values.version, values.tensor});
  }
  return given;
}

Result<ReplayPlan> ReplayedStep::Plan() {
  while (true) {
    ETUDE_ASSIGN_OR_RETURN(ReplayPlan plan, PlanReplay(step_, flow_, selection_.nodes(), Given()));
    bool changed = false;
    std::unordered_set<NodeId> seen;
    for (const HiddenResult& hidden : plan.hidden) {
      if (seen.insert(hidden.maker).second) changed |= UseParts(hidden.maker);
    }
    if (changed) continue;
    if (options_.gradients) AddGradients(plan);
    return plan;
  }
}

Status ReplayedStep::CheckMemory(const ReplayPlan& plan) const {
  int64_t limit = static_cast<int64_t>(std::min<uint64_t>(context_.limits.replay_bytes, INT64_MAX));
  std::string name = "limit 'replay_bytes'";
  if (limit == 0) {
    limit = free_at_start_.value_or(Bytes{}).count;
    name = "free memory on this machine";
    if (options_.group != nullptr) {
      limit /= static_cast<int64_t>(options_.group->present().size());
      name += " for each rank";
    }
  }
  int64_t needed = 0;
  if (__builtin_add_overflow(plan.peak_bytes, plan.written_bytes, &needed)) needed = INT64_MAX;
  if (limit == 0 || needed <= limit) return {};
  return BadInput("the step requires " + std::to_string(needed) + " bytes at its peak (" +
                  std::to_string(plan.outside_bytes) + " for outside tensors, " +
                  std::to_string(plan.written_bytes) + " to restore changed tensors), " + name +
                  ": " + std::to_string(limit));
}

Status ReplayedStep::Load(ReplayPlan plan) {
  ETUDE_RETURN_IF_ERROR(CheckMemory(plan));
  std::vector<const BoundOperator*> operators;
  std::vector<NodeId> nodes;
  operators.reserve(plan.ops.size());
  nodes.reserve(plan.ops.size());
  for (const PlannedOp& op : plan.ops) {
    operators.push_back(&bound_.at(op.node));
    nodes.push_back(op.node);
  }
  const auto waits = FindCommunicationWaits(step_, flow_, nodes);
  code_left_out_ = FindCodeLeftOut();
  runner_.Load(std::move(plan), std::move(operators), waits, options_.group);
  return {};
}

Status ReplayedStep::PlanAndLoad() {
  ETUDE_ASSIGN_OR_RETURN(ReplayPlan plan, Plan());
  return Load(std::move(plan));
}

std::string ReplayedStep::WhyNotBound(NodeId node) const { return binder_.WhyNotRegistered(node); }

std::vector<OwnCode> ReplayedStep::FindCodeLeftOut() const {
  std::vector<OwnCode> found;
  for (const NodeId node : selection_.replaced()) {
    // A known operator that was replaced only calls others.
    if (bound_.contains(node)) continue;
    std::optional<Nanos> own = times_.duration(node);
    const std::vector<NodeId> parts = step_.OperatorsBelow(node);
    if (!trace_.traits().exclusive_durations) {
      for (const NodeId part : parts) {
        const auto inner = times_.duration(part);
        own = own && inner ? std::optional(std::max(Nanos{}, *own - *inner)) : std::nullopt;
      }
    }
    // Python code that calls operators takes as long as elsewhere, where it is a gap.
    constexpr int64_t kCallNs = 50'000;
    const Nanos calls{kCallNs * static_cast<int64_t>(parts.size() + 1)};
    // PyTorch's own such operators (FSDP's) only call others.
    const bool only_calls = IsOfPyTorch(OperatorNameOf(trace_, node)) || (own && *own <= calls);
    if (only_calls && WhyNotBound(node) != kTouchesFiles) continue;
    found.push_back({node, own});
  }
  return found;
}

Status ReplayedStep::ProvideAll() { return Provide(true); }
Status ReplayedStep::ProvideAllButState() { return Provide(false); }

Status ReplayedStep::Provide(bool with_state) {
  const Nanos begin = CpuTime();
  for (const OutsideStorage& wanted : plan().outside) {
    if (wanted.made_in_first_step && !with_state) continue;
    ETUDE_RETURN_IF_ERROR(memory_.Provide(plan(), wanted, rules_.of_versions, runner_.slots()));
  }
  AddFillTime(CpuTime() - begin);
  return {};
}

std::span<const NodeId> ReplayedStep::compiled_code() const {
  return options_.only.empty() ? step_.compiled_code() : std::span<const NodeId>();
}

}  // namespace etude
