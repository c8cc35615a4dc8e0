#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/trace/trace.h"
#include "src/trace/words/operator_name.h"

namespace etude {

// Roles of nodes that PyTorch marks by name only. The one place where names decide.
bool IsGradientRelease(std::string_view name);       // "Optimizer.zero_grad#SGD.zero_grad"
bool IsGradientAccumulation(std::string_view name);  // "torch::autograd::AccumulateGrad"

// Returns the kind of compiled code that a label runs, which may include work that is not an
// operator: "CompiledFxGraph" for "## Call CompiledFxGraph f3c… ##"; "" for all other names.
std::string_view CompiledCode(std::string_view name);

// Returns true for kernels of Triton, by their backend. They have no schema.
bool IsTritonKernel(const Trace& trace, NodeId node);
// Returns true for operators, which the dispatcher ran (they have a schema), and Triton kernels,
// but not for labels.
bool IsOperator(const Trace& trace, NodeId node);

inline std::string_view SchemaOf(const Trace& trace, NodeId node) {
  return trace.text(trace.op_schema(node));
}

// Returns the full name by the schema, or the node's own name if it has none (Triton kernels).
inline std::string_view OperatorNameOf(const Trace& trace, NodeId node) {
  const std::string_view schema = SchemaOf(trace, node);
  return schema.empty() ? trace.name(node) : FullOperatorName(schema);
}

// Returns true if time figures may ignore the untimed ones of `all` nodes: at most one in twenty.
// With more, the figure is unknown.
constexpr bool FewAreUntimed(uint64_t untimed, uint64_t all) { return untimed <= all / 20; }

// Returns the host nodes by id, which is their order of entry. Excludes events of allocators, which
// are not calls and have ids after all others regardless of their time.
std::vector<NodeId> HostNodesById(const Trace& trace);

// Nodes of one recorded training or inference step in order of entry (ascending source ids), with
// their nesting. Refers to the trace, which must outlive it; immutable.
class RecordedStep {
 public:
  // Marks nodes without a position in `nodes()`.
  static constexpr uint32_t kNowhere = UINT32_MAX;

  // Selects a step: the nodes from step mark number `index` to the next, or all nodes if there is
  // at most one mark. A non-empty `label` narrows it to the nodes below the first node with
  // operators whose name contains `label`. kUsage if there is no such step or no such label with
  // operators, kBadInput if there is no operator. `compiled_kernels`: a compiler made kernels that
  // are neither operators nor recorded in the trace.
  static Result<RecordedStep> Select(const Trace& trace, std::string_view label, size_t index = 0,
                                     bool compiled_kernels = false);
  // Returns all steps of a trace and the nodes around them as one step.
  static RecordedStep All(const Trace& trace);

  const Trace& trace() const { return *trace_; }
  // Returns the step's host nodes in order of entry.
  std::span<const NodeId> nodes() const { return nodes_; }
  uint32_t position(NodeId node) const { return position_[node.index()]; }
  // Returns the last position inside the node at `position`, itself included. Excludes a backend's
  // work for a communication on its own thread.
  uint32_t last_inside(uint32_t position) const { return last_inside_[position]; }
  // Returns true if the node at `position` is an operator that ran. An operator that was handed to
  // Python did not run; the ones that Python called instead, on the parts of a subclass's tensors,
  // did.
  bool is_operator(uint32_t position) const {
    return IsOperator(*trace_, nodes_[position]) && !handed_on_[position];
  }
  // Returns the nearest enclosing operator of the node at `position` within the step, or kNone.
  NodeId enclosing_operator(uint32_t position) const { return enclosing_[position]; }

  // Returns the operators inside no other operator, in order of entry.
  std::span<const NodeId> top_operators() const { return top_operators_; }
  // Returns the topmost operators inside `node`, in order of entry.
  std::vector<NodeId> OperatorsBelow(NodeId node) const;
  // Returns labels of compiled code that may run work missing from the trace: those outside
  // operators that contain no other such label, no Triton kernel, and no operator (operators are
  // allowed in a whole graph made by a compiler, or if there were compiled kernels).
  std::span<const NodeId> compiled_code() const { return compiled_; }
  // Returns the mark of the step, or kNone.
  NodeId mark() const;
  // Returns the number of step marks in the whole trace.
  size_t mark_count() const { return mark_count_; }

 private:
  void Index();
  // Narrows the step to the nodes below the first node with operators and `label` in its name.
  Status Narrow(std::string_view label);
  void FindHandedOn(const std::vector<uint32_t>& callers);
  void FindCompiledCode(bool compiled_kernels);

  const Trace* trace_ = nullptr;
  std::vector<NodeId> nodes_;
  std::vector<uint32_t> position_;  // by node; kNowhere outside the step
  std::vector<uint32_t> last_inside_;
  std::vector<bool> handed_on_;  // itself or an inner node was handed to Python
  std::vector<NodeId> enclosing_;
  std::vector<NodeId> top_operators_;
  std::vector<NodeId> compiled_;
  size_t mark_count_ = 0;
};

}  // namespace etude
