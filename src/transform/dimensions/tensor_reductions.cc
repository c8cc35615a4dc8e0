#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/run/activity.h"
#include "src/transform/dimensions/tensor_parallel.h"
#include "src/transform/edit/added_reductions.h"

namespace etude {

std::vector<TensorReduction> RepeatReductions(std::span<const TensorReduction> reductions,
                                              const Trace& edited,
                                              std::span<const NodeId> origins) {
  std::unordered_map<NodeId, std::vector<NodeId>> made;  // by origin
  std::vector<NodeId> operators;
  ForEachNode(edited, [&](NodeId node) {
    if (!TimeOf(edited, node) || edited.place(node) == Place::kDevice) return;
    made[origins[node.index()]].push_back(node);
    if (edited.kind(node) == NodeKind::kOperator) operators.push_back(node);
  });
  const auto begin = [&](NodeId node) { return *edited.start(node); };
  for (auto& [origin, nodes] : made) std::ranges::stable_sort(nodes, {}, begin);
  std::ranges::stable_sort(operators, {}, begin);
  std::vector<TensorReduction> repeated;
  for (const TensorReduction& reduction : reductions) {
    for (const NodeId node : made[reduction.made]) {
      const Nanos end = *EndOf(edited, node);
      const auto next_of = [&](const std::vector<NodeId>& nodes) {
        const auto next = std::ranges::lower_bound(nodes, end, {}, begin);
        return next == nodes.end() ? NodeId::None() : *next;
      };
      NodeId read = next_of(made[reduction.read]);
      if (!read) read = next_of(operators);
      if (!read) continue;
      TensorReduction& one = repeated.emplace_back(reduction);
      one.made = node;
      one.read = read;
    }
  }
  return repeated;
}

Result<Trace> AddTensorReductions(const Trace& trace, std::span<const TensorReduction> reductions,
                                  int64_t ranks, const Limits& limits) {
  AddedReductions added(trace, limits);
  const int64_t world_size = ranks * trace.info().world_size.value_or(1);
  ETUDE_RETURN_IF_ERROR(added.Copy(kTensorGroup, ranks, world_size, reductions.size()));
  TraceBuilder& builder = added.builder();
  const auto made_at = [&](const TensorReduction& one) {
    return EndOf(trace, one.made).value_or(Nanos{});
  };
  std::vector<TensorReduction> sorted(reductions.begin(), reductions.end());
  std::ranges::stable_sort(sorted, {}, made_at);
  NodeId last;
  for (const TensorReduction& reduction : sorted) {
    const Nanos made = made_at(reduction);
    const NodeId node = added.Add(made, reduction.dtype, reduction.bytes);
    builder.AddDep(node, reduction.made, DepKind::kSync);
    if (last) builder.AddDep(node, last, DepKind::kSync);
    last = node;
    if (added.on_host()) {
      builder.AddDep(reduction.read, node, DepKind::kSync);
      continue;
    }
    // On a device, work that was launched until then has made the addend.
    if (const NodeId work = added.LaunchedBefore(made)) builder.AddDep(node, work, DepKind::kSync);
    const NodeId next = added.LaunchedAfter(trace.start(reduction.read).value_or(made));
    if (next) builder.AddDep(next, node, DepKind::kSync);
  }
  return builder.Finish();
}

}  // namespace etude
