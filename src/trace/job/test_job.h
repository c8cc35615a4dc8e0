#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/trace/job/job.h"
#include "src/trace/trace_builder.h"

// For tests only.
namespace etude::testing_job {

// Adds a node of the given kind that depends on the previous one.
inline NodeId AddStep(TraceBuilder& builder, NodeKind kind, const std::string& name, Comm comm = {},
                      std::string_view group = {}) {
  NodeRow row;
  row.source_id = builder.node_count() + 1;
  row.kind = kind;
  row.name = builder.Intern(name);
  const size_t before = builder.node_count();
  const NodeId node = builder.AddNode(row);
  if (before > 0) builder.AddDep(node, NodeId::FromIndex(before - 1), DepKind::kData);
  if (!group.empty()) comm.group = builder.Intern(group);
  if (IsCommunication(kind)) builder.SetComm(node, comm);
  return node;
}

// Returns two stages of two ranks each: the first computes and sends to the second, then each stage
// all-reduces among its ranks.
inline Job TwoStages() {
  Job job;
  job.mesh = Mesh::Make({{"dp", 2}, {"pp", 2}}).value();
  job.group_kinds.push_back({.axes = AxisSet{1}, .first_name = 7});
  job.routes.push_back({.shift = {0, 1}});
  for (int stage = 0; stage < 2; ++stage) {
    TraceBuilder builder;
    const bool first = stage == 0;
    if (first) AddStep(builder, NodeKind::kCompute, "forward");
    AddStep(builder, first ? NodeKind::kSend : NodeKind::kRecv, "to {peer}");
    AddStep(builder, NodeKind::kCollective, "reduce", {}, "@0");
    builder.AddProcessGroup({.name = builder.Intern("@0"), .size = 2});
    RankClass one;
    one.ranks = RankSet::Of(first ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{2, 3});
    one.program = builder.Finish().value();
    one.groups = {{.kind = 0, .listed = true}};
    one.states_rank = true;
    one.peers_in_names = true;
    job.classes.push_back(std::move(one));
  }
  job.events.push_back({.is_message = true,
                        .bytes = Bytes{64},
                        .tag = 5,
                        .route = 0,
                        .parts = {{.rank_class = 0, .node = NodeId(1), .states_self = true},
                                  {.rank_class = 1, .node = NodeId(0)}}});
  job.events.push_back(
      {.type = CollectiveType::kAllReduce,
       .bytes = Bytes{1024},
       .group = 0,
       .parts = {{.rank_class = 0, .node = NodeId(2)}, {.rank_class = 1, .node = NodeId(1)}}});
  return job;
}

}  // namespace etude::testing_job
