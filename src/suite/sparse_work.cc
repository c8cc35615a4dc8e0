#include "src/suite/sparse_work.h"

#include <optional>
#include <string_view>
#include <vector>

#include "src/trace/words/operator_name.h"
#include "src/transform/operators/operator_cost.h"

namespace etude::suite {
namespace {

// Returns whether autograd called the node.
bool IsBackward(const Trace& trace, NodeId node) {
  for (; node; node = trace.parent(node)) {
    if (trace.name(node).starts_with(kAutogradCall)) return true;
  }
  return false;
}

}  // namespace

SparseWork ForwardWork(const Trace& trace, const std::map<uint64_t, double>& densities) {
  SparseWork work;
  const std::vector<std::optional<OperatorCost>> costs = OperatorCosts(trace);
  ForEachNode(trace, [&](NodeId node) {
    const std::optional<OperatorCost>& cost = costs[node.index()];
    if (!cost || cost->ops == 0 || !IsMatrixOperator(BaseOperatorName(trace.name(node))) ||
        IsBackward(trace, node)) {
      return;
    }
    double density = 1;
    ForEachTensor(trace, trace.inputs(node), [&](TensorId id) {
      const TensorUse& tensor = trace.tensor(id);
      const auto found = densities.find(tensor.storage == 0 ? tensor.tensor : tensor.storage);
      if (found != densities.end()) density = found->second;
    });
    work.dense += static_cast<double>(cost->ops);
    work.sparse += density * static_cast<double>(cost->ops);
  });
  return work;
}

double TrainingShare(const SparseWork& forward, int64_t steps, int64_t updates) {
  if (forward.dense <= 0 || steps <= 0) return 0;
  const auto all = static_cast<double>(steps);
  const auto dense = static_cast<double>(updates);
  return (3 * forward.sparse * (all - dense) + (2 * forward.sparse + forward.dense) * dense) /
         (3 * forward.dense * all);
}

}  // namespace etude::suite
