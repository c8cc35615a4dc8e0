#include "src/transform/runnable/element_type.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/statistics/median.h"
#include "src/run/step/tensor_shape.h"
#include "src/trace/words/operator_name.h"
#include "src/transform/operators/operator_cost.h"
#include "src/transform/runnable/rank_operators.h"

namespace etude {
namespace {

constexpr int64_t kSmallBytes = 4 << 10;

bool IsFloat(DType type) { return std::ranges::count(kElementTypes, type) != 0; }

// Bytes of an operator's inputs and outputs.
struct TensorBytes {
  double before = 0;
  double after = 0;
};

// Returns the element type of a communication: its own, or that of the gradient of an added one.
DType TypeOf(const Trace& trace, const RunnableNode& node) {
  if (!node.origin) return DType::kUnknown;
  if (const Comm* comm = trace.comm(node.origin)) return comm->dtype;
  DType type = DType::kUnknown;
  ForEachTensor(trace, trace.inputs(node.origin), [&](TensorId id) {
    if (type == DType::kUnknown) type = DTypeOf(trace, trace.tensor(id));
  });
  return type;
}

}  // namespace

Result<TypeChange> ChangeElementType(const Trace& trace, DType type, RunnableRank& rank) {
  const auto element = static_cast<double>(ElementBytes(type).value_or(0));
  const auto bytes_of = [&](NodeId op) {
    TensorBytes bytes;
    const auto add = [&](TensorId id) {
      const TensorUse& use = trace.tensor(id);
      const DType own = DTypeOf(trace, use);
      const auto size = ElementBytes(own);
      if (!size || use.numel <= 0) return;
      const auto elements = static_cast<double>(use.numel);
      bytes.before += elements * static_cast<double>(*size);
      bytes.after += elements * (IsFloat(own) ? element : static_cast<double>(*size));
    };
    ForEachTensor(trace, trace.inputs(op), add);
    ForEachTensor(trace, trace.outputs(op), add);
    return bytes;
  };
  const RankOperators operators(trace);
  const auto costs = OperatorCosts(trace);
  struct Moved {
    uint32_t node;
    TensorBytes bytes;
  };
  std::vector<Moved> moved;
  std::vector<double> small;
  TypeChange change;
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    RunnableNode& node = rank.nodes[i];
    if (IsCommunication(node.kind)) {
      const DType own = TypeOf(trace, node);
      if (!IsFloat(own) || own == type) continue;
      const double ratio = element / static_cast<double>(*ElementBytes(own));
      if (ratio == 1) continue;
      for (std::optional<int64_t>* bytes : {&node.bytes_in, &node.bytes_out}) {
        if (*bytes) **bytes = std::llround(static_cast<double>(**bytes) * ratio);
      }
      node.duration.reset();
      ++change.collectives;
      continue;
    }
    const NodeId op = operators.OperatorOf(node);
    if (!op || !node.duration || node.duration->count == 0) continue;
    const TensorBytes bytes = bytes_of(op);
    if (bytes.before == bytes.after) continue;
    const auto& cost = costs[op.index()];
    if (!cost || IsMatrixOperator(BaseOperatorName(trace.name(op)))) {
      ++change.products;
      continue;
    }
    // An operator that moves nothing itself, such as a view.
    if (cost->bytes == 0 || (cost->done_below && !rank.on_device)) continue;
    moved.push_back({.node = i, .bytes = bytes});
    if (bytes.before <= kSmallBytes) small.push_back(static_cast<double>(node.duration->count));
  }
  if (moved.empty() && change.collectives == 0 && change.products == 0) {
    return BadInput(fmt::format(
        "found no tensors with elements of another size than {}, expected a recording with shapes",
        Name(type)));
  }
  const double fixed = small.empty() ? 0 : MedianInPlace(small);
  for (const Moved& one : moved) {
    std::optional<Nanos>& time = rank.nodes[one.node].duration;
    const auto recorded = static_cast<double>(time->count);
    if (recorded <= fixed) continue;
    const double ratio = one.bytes.after / one.bytes.before;
    time = Nanos{std::llround(fixed + (recorded - fixed) * ratio)};
    ++change.retimed;
  }
  return change;
}

}  // namespace etude
