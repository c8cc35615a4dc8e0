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

// Roles that PyTorch gives to nodes by their names only. The one place where names decide.
bool IsGradientRelease(std::string_view name);       // "Optimizer.zero_grad#SGD.zero_grad"
bool IsGradientAccumulation(std::string_view name);  // "torch::autograd::AccumulateGrad"

// What a label says of code that a compiler made, and which may run work that is no operator:
// "CompiledFxGraph" of "## Call CompiledFxGraph f3c… ##"; "" for all other names.
std::string_view CompiledCode(std::string_view name);

// Whether a node is a kernel of Triton, by its backend. It has no schema.
bool IsTritonKernel(const Trace& trace, NodeId node);
// Whether a node is an operator: one that the dispatcher ran, by its schema, or a Triton kernel.
// Labels are not.
bool IsOperator(const Trace& trace, NodeId node);

inline std::string_view SchemaOf(const Trace& trace, NodeId node) {
  return trace.text(trace.op_schema(node));
}

// The full name by the schema, or the node's own for what has none (Triton kernels).
inline std::string_view OperatorNameOf(const Trace& trace, NodeId node) {
  const std::string_view schema = SchemaOf(trace, node);
  return schema.empty() ? trace.name(node) : FullOperatorName(schema);
}

// Whether figures by time leave out those of `all` nodes of which no time is known: one in twenty
// at most. With more the figure is unknown.
constexpr bool FewAreUntimed(uint64_t untimed, uint64_t all) { return untimed <= all / 20; }

// The nodes that are not a device's, by id: in order of entry. Without events of allocators, which
// are no calls: a reader numbers them behind everything else, wherever they happened.
std::vector<NodeId> HostNodesById(const Trace& trace);

// The nodes of one recorded training or inference step, in order of entry (which is the order of
// their ids in the file), with the nesting needed to know when each was left. Refers to the trace,
// which must outlive it; immutable.
class RecordedStep {
 public:
  // A position in `nodes()`.
  static constexpr uint32_t kNowhere = UINT32_MAX;

  // The step to take: of several step marks the nodes from number `index` to the next, all nodes if
  // there is at most one. `label`, if not empty, narrows it to the nodes below the first node with
  // operators whose name contains it. kUsage if there is no such step or the label names nothing
  // that has operators, kBadInput if there is no operator.
  // `compiled_kernels`: a compiler made kernels that are no operators, and that nothing in the
  // trace tells of.
  static Result<RecordedStep> Select(const Trace& trace, std::string_view label, size_t index = 0,
                                     bool compiled_kernels = false);
  // All steps of a trace, and what is around them, as if it were one.
  static RecordedStep All(const Trace& trace);

  const Trace& trace() const { return *trace_; }
  // The step's host nodes by order of entry.
  std::span<const NodeId> nodes() const { return nodes_; }
  uint32_t position(NodeId node) const { return position_[node.index()]; }
  // The last position inside the node at `position`, itself included: it is left after that.
  // Without what a backend does for a communication on a thread of its own.
  uint32_t last_inside(uint32_t position) const { return last_inside_[position]; }
  // Whether the node at `position` is an operator that ran. One that was handed to Python did not:
  // what Python called in its place did, on what the tensors of a subclass are made of.
  bool is_operator(uint32_t position) const {
    return IsOperator(*trace_, nodes_[position]) && !handed_on_[position];
  }
  // The nearest enclosing operator of the node at `position` within the step, or kNone.
  NodeId enclosing_operator(uint32_t position) const { return enclosing_[position]; }

  // Operators inside no other operator, in order of entry.
  std::span<const NodeId> top_operators() const { return top_operators_; }
  // Operators inside `node` and inside no other operator in between, in order of entry.
  std::vector<NodeId> OperatorsBelow(NodeId node) const;
  // Labels of compiled code, inside no operator, in which no other such label lies, no Triton
  // kernel, and, unless it is a whole graph that a compiler made or there were compiled kernels, no
  // operator: what runs there may be work that the trace does not have.
  std::span<const NodeId> compiled_code() const { return compiled_; }
  // The mark of the step, or kNone.
  NodeId mark() const;
  // Number of step marks in the whole trace.
  size_t mark_count() const { return mark_count_; }

 private:
  void Index();
  // To what is below the first node with `label` in its name that has operators.
  Status Narrow(std::string_view label);
  void FindHandedOn(const std::vector<uint32_t>& callers);
  void FindCompiledCode(bool compiled_kernels);

  const Trace* trace_ = nullptr;
  std::vector<NodeId> nodes_;
  std::vector<uint32_t> position_;  // by node; kNowhere outside the step
  std::vector<uint32_t> last_inside_;
  std::vector<bool> handed_on_;  // to Python, or something inside was
  std::vector<NodeId> enclosing_;
  std::vector<NodeId> top_operators_;
  std::vector<NodeId> compiled_;
  size_t mark_count_ = 0;
};

}  // namespace etude
