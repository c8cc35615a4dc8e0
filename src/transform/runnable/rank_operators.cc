#include "src/transform/runnable/rank_operators.h"

namespace etude {

NodeId RankOperators::OperatorOf(const RunnableNode& node) const {
  NodeId at = node.origin;
  if (!at) return NodeId::None();
  if (trace_->place(at) == Place::kDevice) {
    if (const NodeId launcher = launches_.launcher(at)) at = launcher;
  }
  while (at && trace_->kind(at) != NodeKind::kOperator) at = trace_->parent(at);
  return at;
}

}  // namespace etude
