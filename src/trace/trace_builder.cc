#include "src/trace/trace_builder.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace etude {

TraceBuilder::TraceBuilder(const Limits& limits, const Trace& base)
    : limits_(limits), base_(&base) {
  trace_.strings_ = base.strings_.Copy();
  trace_.int_lists_ = base.int_lists_;
  trace_.value_lists_ = base.value_lists_;
  trace_.tensors_ = base.tensors_;
  trace_.lanes_ = base.lanes_;
}

void TraceBuilder::AddNodesOfBase() {
  const Trace& base = *base_;
  over_node_limit_ = base.node_count() > limits_.nodes;
  trace_.columns_ = base.columns_;
  trace_.comms_ = base.comms_;
  ForEachNode(base, [&](NodeId node) {
    for (const Extra& extra : base.extras(node)) AddExtra(node, extra);
  });
}

void TraceBuilder::Reserve(size_t nodes) {
  nodes = std::min<size_t>(nodes, limits_.nodes);
  parent_refs_.reserve(nodes);
  ForEachColumn(trace_.columns_, [&](auto& column) { column.reserve(nodes); });
}

NodeId TraceBuilder::AddNode(const NodeRow& row) {
  const NodeId node = NodeId::FromIndex(node_count());
  if (node_count() >= limits_.nodes || node.is_none()) {
    over_node_limit_ = true;
    return NodeId::FromIndex(node_count() - 1);
  }
  const size_t i = node.index();
  trace_.columns_.source_id.push_back(row.source_id);
  trace_.columns_.kind.push_back(row.kind);
  trace_.columns_.place.push_back(row.place);
  trace_.columns_.name.push_back(row.name);
  trace_.columns_.lane.push_back(row.lane);
  trace_.columns_.parent.push_back(row.parent_node);
  if (row.parent) parent_refs_.emplace_back(node, *row.parent);
  SetTimes(node, row.start, row.duration, row.exclusive);
  SetList(trace_.columns_.inputs, node, row.inputs);
  SetList(trace_.columns_.outputs, node, row.outputs);
  SetIds(node, row);
  trace_.columns_.fw_parent.SetIf(i, row.fw_parent);
  trace_.columns_.scope.SetIf(i, row.scope);
  trace_.columns_.tid.SetIf(i, row.tid);
  SetText(trace_.columns_.op_schema, node, row.op_schema);
  SetText(trace_.columns_.kernel_backend, node, row.kernel_backend);
  SetText(trace_.columns_.kernel_file, node, row.kernel_file);
  SetText(trace_.columns_.tensor_range, node, row.tensor_range);
  SetText(trace_.columns_.index_statistics, node, row.index_statistics);
  SetText(trace_.columns_.index_values, node, row.index_values);
  return node;
}

void TraceBuilder::SetIds(NodeId node, const NodeRow& row) {
  const size_t i = node.index();
  trace_.columns_.rf_id.SetIf(i, row.rf_id);
  trace_.columns_.seq_id.SetIf(i, row.seq_id);
  trace_.columns_.fw_tid.SetIf(i, row.fw_tid);
  trace_.columns_.correlation.SetIf(i, row.correlation);
  trace_.columns_.external_id.SetIf(i, row.external_id);
}

void TraceBuilder::SetText(std::vector<StringId>& column, NodeId node, StringId text) {
  if (!text) return;
  if (column.size() <= node.index()) column.resize(node.index() + 1);
  column[node.index()] = text;
}

void TraceBuilder::SetList(std::vector<ValueListId>& column, NodeId node, ValueListId list) {
  if (!list) return;
  if (column.size() <= node.index()) column.resize(node.index() + 1);
  column[node.index()] = list;
}

void TraceBuilder::SetTimes(NodeId node, std::optional<Nanos> start, std::optional<Nanos> duration,
                            std::optional<Nanos> exclusive) {
  const auto set = [&](KnownColumn<Nanos>& column, const std::optional<Nanos>& time) {
    if (time && time->count >= 0) column.Set(node.index(), *time);
    if (time && time->count < 0) stats().Count(Stat::kNegativeDuration);
  };
  trace_.columns_.start.SetIf(node.index(), start);
  set(trace_.columns_.duration, duration);
  set(trace_.columns_.exclusive, exclusive);
}

void TraceBuilder::AddDep(NodeId node, uint64_t source_id, DepKind kind) {
  if (dep_rows_.size() >= limits_.edges) {
    over_edge_limit_ = true;
    return;
  }
  dep_rows_.push_back({.node = node, .kind = kind, .resolved = false, .target = source_id});
}

void TraceBuilder::AddDep(NodeId node, NodeId dep, DepKind kind) {
  AddDep(node, uint64_t{dep.value()}, kind);
  if (!over_edge_limit_) dep_rows_.back().resolved = true;
}

void TraceBuilder::AddExtra(NodeId node, const Extra& extra) {
  extra_rows_.emplace_back(node, extra);
}

void TraceBuilder::SetComm(NodeId node, const Comm& comm) {
  trace_.comms_.emplace_back(node, comm);
}

void TraceBuilder::CheckSize(std::optional<int64_t>& group_size) {
  if (group_size.value_or(1) >= 1) return;
  group_size.reset();
  stats().Count(Stat::kNonFiniteNumber);
}

void TraceBuilder::AddProcessGroup(const ProcessGroup& said) {
  ProcessGroup group = said;
  CheckSize(group.size);
  const auto [at, is_new] = trace_.groups_by_name_.emplace(group.name, trace_.groups_.size());
  if (is_new) {
    trace_.groups_.push_back(group);
    return;
  }
  ProcessGroup& known = trace_.groups_[at->second];
  if (!known.description) known.description = group.description;
  if (!known.backend) known.backend = group.backend;
  // An empty list (all ranks) is more than no list.
  if (!group.ranks.is_none() && ints(known.ranks).empty()) known.ranks = group.ranks;
  if (!known.size) known.size = group.size;
}

void TraceBuilder::IndexSourceIds() {
  const std::vector<uint64_t>& ids = trace_.columns_.source_id;
  std::vector<NodeId>& order = trace_.by_source_id_;
  if (!std::ranges::is_sorted(ids)) {
    order.resize(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) order[i] = NodeId::FromIndex(i);
    std::ranges::stable_sort(order, {}, [&](NodeId node) { return ids[node.index()]; });
  }
  const auto id_at = [&](size_t i) { return order.empty() ? ids[i] : ids[order[i].index()]; };
  for (size_t i = 1; i < ids.size(); ++i) {
    if (id_at(i) == id_at(i - 1)) stats().Count(Stat::kDuplicateId);
  }
}

void TraceBuilder::ResolveParents() {
  for (const auto& [node, source_id] : parent_refs_) {
    const NodeId parent = trace_.Find(source_id);
    if (parent) {
      trace_.columns_.parent[node.index()] = parent;
    } else {
      trace_.dangling_.push_back(
          {.node = node, .source_id = source_id, .kind = DepKind::kControl, .is_parent = true});
      stats().Count(Stat::kDanglingParent);
    }
  }
}

// Removes the parent of a node that is its own ancestor, so that nesting is a forest. The removed
// reference becomes a dangling one.
void TraceBuilder::BreakParentCycles() {
  enum class Mark : uint8_t { kNew, kOnPath, kDone };
  std::vector<Mark> marks(node_count(), Mark::kNew);
  std::vector<NodeId> path;
  for (size_t i = 0; i < node_count(); ++i) {
    NodeId node = NodeId::FromIndex(i);
    path.clear();
    while (node && marks[node.index()] == Mark::kNew) {
      marks[node.index()] = Mark::kOnPath;
      path.push_back(node);
      node = trace_.columns_.parent[node.index()];
    }
    if (node && marks[node.index()] == Mark::kOnPath) {
      const NodeId last = path.back();
      trace_.dangling_.push_back({.node = last,
                                  .source_id = trace_.columns_.source_id[node.index()],
                                  .kind = DepKind::kControl,
                                  .is_parent = true});
      trace_.columns_.parent[last.index()] = NodeId::None();
      stats().Count(Stat::kParentCycle);
    }
    for (const NodeId done : path) marks[done.index()] = Mark::kDone;
  }
}

void TraceBuilder::ResolveDeps() {
  size_t kept = 0;
  for (DepRow& row : dep_rows_) {
    if (!row.resolved) {
      const NodeId target = trace_.Find(row.target);
      if (!target) {
        trace_.dangling_.push_back(
            {.node = row.node, .source_id = row.target, .kind = row.kind, .is_parent = false});
        stats().Count(Stat::kDanglingDependency);
        continue;
      }
      row.target = target.value();
    }
    dep_rows_[kept++] = row;
  }
  dep_rows_.resize(kept);
  const size_t rows = dep_rows_.empty() ? 0 : node_count();
  const auto node_of = [](const DepRow& row) { return row.node.index(); };
  const auto target_id = [](const DepRow& row) {
    return NodeId(static_cast<uint32_t>(row.target));
  };
  const auto kind_of = [](const DepRow& row) { return row.kind; };
  trace_.deps_ = Csr<NodeId>::Build(rows, dep_rows_, node_of, target_id);
  trace_.dep_kinds_ = Csr<DepKind>::Build(rows, dep_rows_, node_of, kind_of);
}

// Runs Kahn's algorithm over parents and dependencies; unordered nodes are on a cycle or behind
// one.
void TraceBuilder::FindCycle() {
  const size_t nodes = node_count();
  std::vector<uint32_t> waits(nodes);
  std::vector<NodeId> ready;
  const auto dependents = Csr<NodeId>::Build(
      dep_rows_.empty() ? 0 : nodes, dep_rows_,
      [](const DepRow& row) { return static_cast<size_t>(row.target); },
      [](const DepRow& row) { return row.node; });
  for (size_t i = 0; i < nodes; ++i) {
    waits[i] = static_cast<uint32_t>(trace_.deps_[i].size()) + (trace_.columns_.parent[i] ? 1 : 0);
    if (waits[i] == 0) ready.push_back(NodeId::FromIndex(i));
  }
  size_t ordered = 0;
  while (!ready.empty()) {
    const NodeId node = ready.back();
    ready.pop_back();
    ++ordered;
    const auto release = [&](NodeId next) {
      if (--waits[next.index()] == 0) ready.push_back(next);
    };
    for (const NodeId child : trace_.children_[node.index()]) release(child);
    for (const NodeId next : dependents[node.index()]) release(next);
  }
  if (ordered == nodes) return;
  stats().Count(Stat::kDependencyCycle, nodes - ordered);
  // Every remaining node waits for another one: the walk must return to a visited node.
  const auto blocked = [&](NodeId node) { return node && waits[node.index()] != 0; };
  const auto blocker = [&](NodeId node) {
    if (blocked(trace_.columns_.parent[node.index()])) return trace_.columns_.parent[node.index()];
    return *std::ranges::find_if(trace_.deps_[node.index()], blocked);
  };
  const auto first = std::ranges::find_if(waits, [](uint32_t count) { return count != 0; });
  NodeId node = NodeId::FromIndex(static_cast<size_t>(first - waits.begin()));
  std::vector<uint32_t> step_of(nodes, UINT32_MAX);
  std::vector<NodeId> walk;
  while (step_of[node.index()] == UINT32_MAX) {
    step_of[node.index()] = static_cast<uint32_t>(walk.size());
    walk.push_back(node);
    node = blocker(node);
  }
  trace_.cycle_.assign(walk.begin() + step_of[node.index()], walk.end());
}

// Keeps one entry for each communication and each other node with facts, sorted by node.
void TraceBuilder::SettleComms() {
  std::vector<std::pair<NodeId, Comm>> comms;
  for (size_t i = 0; i < node_count(); ++i) {
    if (IsCommunication(trace_.columns_.kind[i])) comms.emplace_back(NodeId::FromIndex(i), Comm{});
  }
  comms.insert(comms.end(), trace_.comms_.begin(), trace_.comms_.end());
  std::ranges::stable_sort(comms, {}, &std::pair<NodeId, Comm>::first);
  // The last of several entries of one node wins.
  std::ranges::reverse(comms);
  const auto repeated = std::ranges::unique(comms, {}, &std::pair<NodeId, Comm>::first);
  comms.erase(repeated.begin(), repeated.end());
  std::ranges::reverse(comms);
  for (auto& [node, comm] : comms) CheckSize(comm.group_size);
  trace_.comms_ = std::move(comms);
}

Result<Trace> TraceBuilder::Finish() {
  if (over_node_limit_) {
    return BadInput("more than " + std::to_string(limits_.nodes) + " nodes (limit 'nodes')");
  }
  if (over_edge_limit_) {
    return BadInput("more than " + std::to_string(limits_.edges) + " dependencies (limit 'edges')");
  }
  IndexSourceIds();
  ResolveParents();
  BreakParentCycles();
  const size_t nodes = node_count();
  std::vector<NodeId> with_parent;
  with_parent.reserve(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    if (trace_.columns_.parent[i]) with_parent.push_back(NodeId::FromIndex(i));
  }
  trace_.children_ = Csr<NodeId>::Build(
      nodes, with_parent, [&](NodeId node) { return trace_.columns_.parent[node.index()].index(); },
      [](NodeId node) { return node; });
  ResolveDeps();
  FindCycle();
  trace_.extras_ = Csr<Extra>::Build(
      extra_rows_.empty() ? 0 : nodes, extra_rows_,
      [](const auto& row) { return row.first.index(); },
      [](const auto& row) { return row.second; });

  SettleComms();
  std::ranges::stable_sort(trace_.dangling_, {}, &Trace::Dangling::node);
  trace_.int_lists_.Freeze();
  trace_.value_lists_.Freeze();
  trace_.tensors_.Freeze();
  trace_.lanes_.Freeze();
  ForEachColumn(trace_.columns_, [](auto& column) { column.shrink_to_fit(); });
  return std::move(trace_);
}

}  // namespace etude
