#include "src/transform/edit/added_reductions.h"

#include <algorithm>
#include <iterator>

#include "src/run/activity.h"
#include "src/run/waits/program_order.h"
#include "src/trace/trace_copy.h"

namespace etude {

AddedReductions::AddedReductions(const Trace& trace, const Limits& limits)
    : trace_(trace), builder_(limits, trace) {
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

Status AddedReductions::Copy(std::string_view group, int64_t ranks, int64_t world_size,
                             uint64_t added) {
  TraceCopy copy(trace_, builder_);
  copy.CopyInfo();
  copy.AddGroups();
  copy.AddStats();
  builder_.info().world_size = world_size;
  builder_.AddNodesOfBase();
  uint64_t most = 0;
  ForEachNode(trace_, [&](NodeId node) {
    most = std::max(most, trace_.source_id(node));
    const auto deps = trace_.deps(node);
    const auto kinds = trace_.dep_kinds(node);
    for (size_t i = 0; i < deps.size(); ++i) builder_.AddDep(node, deps[i], kinds[i]);
  });
  if (most > UINT64_MAX - added - 1) {
    return BadInput("found node ids near 2^64, expected smaller ones, so that nodes can be added");
  }
  next_id_ = most + 1;
  ranks_ = ranks;
  group_ = builder_.Intern(group);
  builder_.AddProcessGroup({.name = group_, .ranks = builder_.InternInts({}), .size = ranks_});
  Lane lane;
  if (on_host()) {
    lane.thread = group_;
  } else {
    if (const LaneId first = trace_.lane_id(launched_.front().second)) lane = trace_.lane(first);
    lane.stream = last_stream_ < INT32_MAX ? last_stream_ + 1 : -1;
  }
  lane_ = builder_.InternLane(lane);
  return {};
}

NodeId AddedReductions::Add(Nanos start, DType dtype, Bytes bytes) {
  NodeRow row;
  row.source_id = NextId();
  row.kind = NodeKind::kCollective;
  row.place = on_host() ? Place::kHost : Place::kDevice;
  row.name = builder_.Intern("all_reduce");
  row.lane = lane_;
  row.start = start;
  row.duration = Nanos{};
  row.exclusive = Nanos{};
  const NodeId node = builder_.AddNode(row);
  builder_.SetComm(node, {.type = CollectiveType::kAllReduce,
                          .group = group_,
                          .dtype = dtype,
                          .bytes = bytes,
                          .group_size = ranks_});
  return node;
}

NodeId AddedReductions::LaunchedBefore(Nanos time) const {
  const auto next = std::ranges::lower_bound(launched_, time, {}, &Launched::first);
  return next == launched_.begin() ? NodeId::None() : std::prev(next)->second;
}

NodeId AddedReductions::LaunchedAfter(Nanos time) const {
  const auto next = std::ranges::lower_bound(launched_, time, {}, &Launched::first);
  return next == launched_.end() ? NodeId::None() : next->second;
}

}  // namespace etude
