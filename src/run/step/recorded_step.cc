#include "src/run/step/recorded_step.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/run/calls/callers.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/memory_event.h"

namespace etude {

bool IsGradientRelease(std::string_view name) { return name.starts_with("Optimizer.zero_grad#"); }

bool IsGradientAccumulation(std::string_view name) {
  return name == "torch::autograd::AccumulateGrad";
}

namespace {

// Returns true for the label by which PyTorch hands the operator around it to Python, because an
// argument is of a tensor subclass (DTensor) or a mode is active.
bool IsHandedToPython(std::string_view name) {
  return name == "PythonSubclass" || name == "PythonDispatchMode";
}

struct CompiledLabel {
  std::string_view prefix;  // of the label's name
  std::string_view code;
  bool is_graph;  // made by a compiler; else a region that may run operators one by one
};

constexpr auto kCompiledLabels = std::to_array<CompiledLabel>({
    {"## Call CompiledFxGraph ", "CompiledFxGraph", true},
    {"CompiledFunctionBackward", "CompiledFunctionBackward", false},
    {"Torch-Compiled Region", "Torch-Compiled Region", false},
});

const CompiledLabel* FindCompiledLabel(std::string_view name) {
  const auto found = std::ranges::find_if(
      kCompiledLabels, [&](const CompiledLabel& label) { return name.starts_with(label.prefix); });
  return found == kCompiledLabels.end() ? nullptr : &*found;
}

}  // namespace

std::string_view CompiledCode(std::string_view name) {
  const CompiledLabel* label = FindCompiledLabel(name);
  return label == nullptr ? std::string_view() : label->code;
}

bool IsTritonKernel(const Trace& trace, NodeId node) {
  return trace.text(trace.kernel_backend(node)) == "triton";
}

bool IsOperator(const Trace& trace, NodeId node) {
  return !trace.text(trace.op_schema(node)).empty() || IsTritonKernel(trace, node);
}

std::vector<NodeId> HostNodesById(const Trace& trace) {
  std::vector<NodeId> host;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.place(node) != Place::kDevice && !IsMemoryEvent(trace, node)) host.push_back(node);
  });
  std::ranges::stable_sort(host, {}, [&](NodeId node) { return trace.source_id(node); });
  return host;
}

Result<RecordedStep> RecordedStep::Select(const Trace& trace, std::string_view label, size_t index,
                                          bool compiled_kernels) {
  RecordedStep step;
  step.trace_ = &trace;
  const std::vector<NodeId> host = HostNodesById(trace);
  std::vector<size_t> marks;
  for (size_t i = 0; i < host.size(); ++i) {
    if (IsStepMark(trace.name(host[i]))) marks.push_back(i);
  }
  step.mark_count_ = marks.size();
  auto begin = host.begin();
  auto end = host.end();
  if (index > 0 && index >= marks.size()) {
    return MakeError(ErrorCode::kUsage, "no step " + std::to_string(index) + ": the trace has " +
                                            std::to_string(marks.size()) + " step marks");
  }
  if (marks.size() > 1) {
    begin = host.begin() + static_cast<std::ptrdiff_t>(marks[index]);
    if (index + 1 < marks.size())
      end = host.begin() + static_cast<std::ptrdiff_t>(marks[index + 1]);
  }
  step.nodes_.assign(begin, end);

  step.Index();
  step.FindCompiledCode(compiled_kernels);
  if (!label.empty()) {
    ETUDE_RETURN_IF_ERROR(step.Narrow(label));
    step.Index();
    step.FindCompiledCode(compiled_kernels);
  }
  if (step.top_operators_.empty() && step.compiled_.empty()) {
    return BadInput("no operator with a schema in the step: found " +
                    std::to_string(step.nodes_.size()) +
                    " host nodes, expected a PyTorch execution trace");
  }
  return step;
}

Status RecordedStep::Narrow(std::string_view label) {
  std::vector<bool> has_work(nodes_.size());  // the node or one below has work
  for (const NodeId node : compiled_) has_work[position(node)] = true;
  for (uint32_t i = static_cast<uint32_t>(nodes_.size()); i-- > 0;) {
    if (is_operator(i)) has_work[i] = true;
    const NodeId parent = trace_->parent(nodes_[i]);
    const uint32_t above = has_work[i] && parent ? position(parent) : kNowhere;
    if (above < i) has_work[above] = true;
  }
  bool is_named = false;
  uint32_t root = 0;
  for (; root < nodes_.size(); ++root) {
    if (trace_->name(nodes_[root]).find(label) == std::string_view::npos) continue;
    is_named = true;
    if (has_work[root]) break;
  }
  if (root == nodes_.size()) {
    const std::string quoted = "'" + std::string(label) + "'";
    return MakeError(ErrorCode::kUsage,
                     is_named ? "no operator below any node with " + quoted + " in its name"
                              : "no node of the step has a name with " + quoted + " in it");
  }
  std::vector<bool> inside(trace_->node_count());
  std::vector<NodeId> kept;
  inside[nodes_[root].index()] = true;
  for (const NodeId node : nodes_) {
    const NodeId parent = trace_->parent(node);
    if (parent && inside[parent.index()]) inside[node.index()] = true;
    if (inside[node.index()]) kept.push_back(node);
  }
  nodes_ = std::move(kept);
  return {};
}

RecordedStep RecordedStep::All(const Trace& trace) {
  RecordedStep all;
  all.trace_ = &trace;
  all.nodes_ = HostNodesById(trace);
  all.mark_count_ = static_cast<size_t>(
      std::ranges::count_if(all.nodes_, [&](NodeId node) { return IsStepMark(trace.name(node)); }));
  all.Index();
  all.FindCompiledCode(/*compiled_kernels=*/false);
  return all;
}

void RecordedStep::Index() {
  const auto count = static_cast<uint32_t>(nodes_.size());
  top_operators_.clear();
  position_.assign(trace_->node_count(), kNowhere);
  for (uint32_t i = 0; i < count; ++i) position_[nodes_[i].index()] = i;
  last_inside_.resize(count);
  enclosing_.assign(count, NodeId::None());
  for (uint32_t i = 0; i < count; ++i) last_inside_[i] = i;
  static_assert(kNoCaller == kNowhere);
  const std::vector<uint32_t> callers =
      FindCallers(*trace_, nodes_, [&](NodeId node) { return NodeTimeOf(*trace_, node); });
  for (uint32_t i = count; i-- > 0;) {
    const uint32_t caller = callers[i];
    // A backend's work for an operator on its own thread continues after the operator ends.
    if (caller == kNowhere || IsHostThreadLabel(trace_->name(nodes_[i]))) continue;
    last_inside_[caller] = std::max(last_inside_[caller], last_inside_[i]);
  }
  FindHandedOn(callers);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t caller = callers[i];
    if (caller != kNowhere)
      enclosing_[i] = is_operator(caller) ? nodes_[caller] : enclosing_[caller];
    if (!enclosing_[i] && is_operator(i)) top_operators_.push_back(nodes_[i]);
  }
}

void RecordedStep::FindHandedOn(const std::vector<uint32_t>& callers) {
  handed_on_.assign(nodes_.size(), false);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!IsHandedToPython(trace_->name(nodes_[i]))) continue;
    for (uint32_t at = callers[i]; at != kNowhere && !handed_on_[at]; at = callers[at]) {
      handed_on_[at] = true;
    }
  }
}

void RecordedStep::FindCompiledCode(bool compiled_kernels) {
  compiled_.clear();
  std::vector<bool> has_operator(nodes_.size());
  std::vector<bool> has_inner(nodes_.size());  // contains a Triton kernel or other compiled code
  for (uint32_t i = static_cast<uint32_t>(nodes_.size()); i-- > 0;) {
    const NodeId node = nodes_[i];
    const CompiledLabel* label = FindCompiledLabel(trace_->name(node));
    if (label != nullptr && !enclosing_[i] && !has_inner[i] &&
        (label->is_graph || compiled_kernels || !has_operator[i])) {
      compiled_.push_back(node);
    }
    const NodeId parent = trace_->parent(node);
    const uint32_t above = parent ? position_[parent.index()] : kNowhere;
    if (above >= i) continue;
    if (has_operator[i] || is_operator(i)) has_operator[above] = true;
    if (has_inner[i] || label != nullptr || IsTritonKernel(*trace_, node)) has_inner[above] = true;
  }
  std::ranges::reverse(compiled_);
}

NodeId RecordedStep::mark() const {
  const auto found =
      std::ranges::find_if(nodes_, [&](NodeId node) { return IsStepMark(trace_->name(node)); });
  return found == nodes_.end() ? NodeId::None() : *found;
}

std::vector<NodeId> RecordedStep::OperatorsBelow(NodeId node) const {
  std::vector<NodeId> found;
  const uint32_t begin = position_[node.index()];
  if (begin == kNowhere) return found;
  for (uint32_t i = begin + 1; i <= last_inside_[begin]; ++i) {
    if (enclosing_[i] == node && is_operator(i)) found.push_back(nodes_[i]);
  }
  return found;
}

}  // namespace etude
