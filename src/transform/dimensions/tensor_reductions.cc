#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/run/activity.h"
#include "src/run/waits/program_order.h"
#include "src/trace/trace_builder.h"
#include "src/trace/trace_copy.h"
#include "src/transform/dimensions/tensor_parallel.h"

namespace etude {
namespace {

class ReductionAdder {
 public:
  ReductionAdder(const Trace& trace, int64_t ranks, const Limits& limits)
      : trace_(trace), ranks_(ranks), builder_(limits, trace) {}

  Result<Trace> Run(std::span<const TensorReduction> reductions) {
    FindLaunched();
    ETUDE_RETURN_IF_ERROR(Copy(reductions.size()));
    std::vector<TensorReduction> sorted(reductions.begin(), reductions.end());
    std::ranges::stable_sort(sorted, {}, [&](const TensorReduction& one) {
      return EndOf(trace_, one.made).value_or(Nanos{});
    });
    for (const TensorReduction& reduction : sorted) Add(reduction);
    return builder_.Finish();
  }

 private:
  using Launched = std::pair<Nanos, NodeId>;  // launch time, device work

  void FindLaunched() {
    const Launches launches(trace_);
    ForEachNode(trace_, [&](NodeId node) {
      if (!IsDeviceWork(trace_.kind(node)) || trace_.place(node) != Place::kDevice) return;
      if (const auto time = launches.time(node)) launched_.emplace_back(*time, node);
      if (const LaneId lane = trace_.lane_id(node)) {
        last_stream_ = std::max(last_stream_, trace_.lane(lane).stream);
      }
    });
    std::ranges::sort(launched_, {},
                      [](const auto& one) { return std::pair(one.first, one.second.index()); });
  }

  Status Copy(size_t added) {
    TraceCopy copy(trace_, builder_);
    copy.CopyInfo();
    copy.AddGroups();
    copy.AddStats();
    builder_.info().world_size = ranks_ * trace_.info().world_size.value_or(1);
    builder_.AddNodesOfBase();
    uint64_t most = 0;
    ForEachNode(trace_, [&](NodeId node) {
      most = std::max(most, trace_.source_id(node));
      const auto deps = trace_.deps(node);
      const auto kinds = trace_.dep_kinds(node);
      for (size_t i = 0; i < deps.size(); ++i) builder_.AddDep(node, deps[i], kinds[i]);
    });
    if (most > UINT64_MAX - added - 1) {
      return BadInput(
          "found node ids near 2^64, expected smaller ones, so that nodes can be added");
    }
    next_id_ = most + 1;
    group_ = builder_.Intern(kTensorGroup);
    builder_.AddProcessGroup({.name = group_, .ranks = builder_.InternInts({}), .size = ranks_});
    Lane lane;
    if (launched_.empty()) {
      lane.thread = group_;
    } else {
      if (const LaneId first = trace_.lane_id(launched_.front().second)) lane = trace_.lane(first);
      lane.stream = last_stream_ < INT32_MAX ? last_stream_ + 1 : -1;
    }
    lane_ = builder_.InternLane(lane);
    return {};
  }

  void Add(const TensorReduction& reduction) {
    const Nanos made = EndOf(trace_, reduction.made).value_or(Nanos{});
    NodeRow row;
    row.source_id = next_id_++;
    row.kind = NodeKind::kCollective;
    row.place = launched_.empty() ? Place::kHost : Place::kDevice;
    row.name = builder_.Intern("all_reduce");
    row.lane = lane_;
    row.start = made;
    row.duration = Nanos{};
    row.exclusive = Nanos{};
    const NodeId node = builder_.AddNode(row);
    builder_.SetComm(node, {.type = CollectiveType::kAllReduce,
                            .group = group_,
                            .dtype = reduction.dtype,
                            .bytes = reduction.bytes,
                            .group_size = ranks_});
    builder_.AddDep(node, reduction.made, DepKind::kSync);
    if (last_) builder_.AddDep(node, last_, DepKind::kSync);
    last_ = node;
    if (launched_.empty()) {
      builder_.AddDep(reduction.read, node, DepKind::kSync);
      return;
    }
    // On a device, work that was launched until then has made the addend.
    const auto first = std::ranges::lower_bound(launched_, made, {}, &Launched::first);
    if (first != launched_.begin()) builder_.AddDep(node, std::prev(first)->second, DepKind::kSync);
    const Nanos read = trace_.start(reduction.read).value_or(made);
    const auto next = std::ranges::lower_bound(launched_, read, {}, &Launched::first);
    if (next != launched_.end()) builder_.AddDep(next->second, node, DepKind::kSync);
  }

  const Trace& trace_;
  int64_t ranks_;
  TraceBuilder builder_;
  std::vector<Launched> launched_;  // by time
  int32_t last_stream_ = 0;
  uint64_t next_id_ = 0;
  StringId group_;
  LaneId lane_;
  NodeId last_;
};

}  // namespace

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
  return ReductionAdder(trace, ranks, limits).Run(reductions);
}

}  // namespace etude
