#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/trace/trace.h"

namespace etude {

// One node to be added to a trace. References to parents and dependencies use the file's ids and
// may point to later nodes.
struct NodeRow {
  uint64_t source_id = 0;
  NodeKind kind = NodeKind::kUnknown;
  Place place = Place::kUnknown;
  StringId name;
  std::optional<uint64_t> parent;  // source id
  NodeId parent_node;              // alternatively the parent itself, which may come later
  LaneId lane;
  std::optional<Nanos> start;
  std::optional<Nanos> duration;
  std::optional<Nanos> exclusive;
  ValueListId inputs;  // kNone: missing
  ValueListId outputs;
  std::optional<uint64_t> rf_id;
  std::optional<uint64_t> fw_parent;
  std::optional<int64_t> seq_id;
  std::optional<uint8_t> scope;
  std::optional<uint64_t> tid;
  std::optional<uint64_t> fw_tid;
  StringId op_schema;
  StringId kernel_backend;
  StringId kernel_file;
  StringId tensor_range;
  StringId index_statistics;
  StringId index_values;
  std::optional<int64_t> correlation;
  std::optional<int64_t> external_id;
};

// Collects rows in any order and makes a Trace of them. Not thread-safe. Single use: add rows, then
// call Finish().
class TraceBuilder {
 public:
  explicit TraceBuilder(const Limits& limits = {}) : limits_(limits) {}
  // Begins with the tables of `base`, which must outlive the builder: its ids of strings, lists,
  // tensors and lanes are valid in the new trace.
  TraceBuilder(const Limits& limits, const Trace& base);
  bool has_tables_of(const Trace& trace) const { return base_ == &trace; }
  // Adds all nodes of `base` under the same ids and with the same parents, but without
  // dependencies. The builder must have no nodes.
  void AddNodesOfBase();

  // Reserves memory for `nodes` nodes.
  void Reserve(size_t nodes);

  TraceInfo& info() { return trace_.info_; }
  Stats& stats() { return trace_.stats_; }

  // Shared tables of the trace.
  StringId Intern(std::string_view text) { return trace_.strings_.Intern(text); }
  std::string_view text(StringId id) const { return trace_.strings_.Get(id); }
  IntListId InternInts(std::span<const int64_t> ints) { return trace_.int_lists_.Intern(ints); }
  ValueListId InternValues(std::span<const Value> values) {
    return trace_.value_lists_.Intern(values);
  }
  TensorId InternTensor(const TensorUse& use) { return trace_.tensors_.Intern(use); }
  LaneId InternLane(const Lane& lane) { return trace_.lanes_.Intern(lane); }
  const TensorUse& tensor(TensorId id) const { return trace_.tensors_.Get(id); }
  std::span<const Value> values(ValueListId id) const { return trace_.value_lists_.Get(id); }
  std::span<const int64_t> ints(IntListId id) const { return trace_.int_lists_.Get(id); }

  // Adds a node. At most Limits::nodes; Finish() reports the excess as an error.
  NodeId AddNode(const NodeRow& row);
  size_t node_count() const { return trace_.columns_.kind.size(); }
  NodeKind kind(NodeId node) const { return trace_.columns_.kind[node.index()]; }
  Place place(NodeId node) const { return trace_.columns_.place[node.index()]; }
  const Lane& lane(LaneId id) const { return trace_.lanes_.Get(id); }
  StringId name(NodeId node) const { return trace_.columns_.name[node.index()]; }
  uint64_t source_id(NodeId node) const { return trace_.columns_.source_id[node.index()]; }
  LaneId lane_id(NodeId node) const { return trace_.lane_id(node); }
  std::optional<Nanos> start(NodeId node) const { return trace_.start(node); }
  std::optional<Nanos> duration(NodeId node) const { return trace_.duration(node); }
  std::optional<int64_t> correlation(NodeId node) const { return trace_.correlation(node); }
  std::optional<int64_t> external_id(NodeId node) const { return trace_.external_id(node); }

  // Makes `node` depend on the node with id `source_id` in the file.
  void AddDep(NodeId node, uint64_t source_id, DepKind kind);
  // Makes `node` depend on `dep`.
  void AddDep(NodeId node, NodeId dep, DepKind kind);
  void AddExtra(NodeId node, const Extra& extra);
  // Sets the communication facts of a node, replacing earlier ones. A group size below 1 becomes
  // unknown and is counted.
  void SetComm(NodeId node, const Comm& comm);
  // Adds a group, or merges it into the known group with that name: missing facts are filled in. A
  // size below 1 is unknown.
  void AddProcessGroup(const ProcessGroup& group);
  std::span<const ProcessGroup> process_groups() const { return trace_.groups_; }
  const ProcessGroup* FindGroup(StringId name) const { return trace_.FindGroup(name); }
  // Returns the size by the facts so far.
  std::optional<int64_t> GroupSize(const ProcessGroup& group) const {
    return trace_.GroupSize(group);
  }
  bool HasAllRanks(const ProcessGroup& group) const { return trace_.HasAllRanks(group); }
  // Setters for nodes already added, for facts from elsewhere in the file.
  void SetTimes(NodeId node, std::optional<Nanos> start, std::optional<Nanos> duration,
                std::optional<Nanos> exclusive);
  // Makes a node's start and duration unknown.
  void ClearTimes(NodeId node) {
    trace_.columns_.start.Clear(node.index());
    trace_.columns_.duration.Clear(node.index());
  }
  // Sets the ids that device traces use to link events, if `row` has them.
  void SetIds(NodeId node, const NodeRow& row);
  void SetSourceId(NodeId node, uint64_t id) { trace_.columns_.source_id[node.index()] = id; }
  // Sets the parent of a node that was added without one.
  void SetParent(NodeId node, uint64_t source_id) { parent_refs_.emplace_back(node, source_id); }
  void SetParent(NodeId node, NodeId parent) { trace_.columns_.parent[node.index()] = parent; }
  void SetKind(NodeId node, NodeKind kind) { trace_.columns_.kind[node.index()] = kind; }
  void SetPlace(NodeId node, Place place) { trace_.columns_.place[node.index()] = place; }
  void SetLane(NodeId node, LaneId lane) { trace_.columns_.lane[node.index()] = lane; }
  void SetScope(NodeId node, uint8_t scope) { trace_.columns_.scope.SetIf(node.index(), scope); }

  // Resolves references, finds duplicates, dangling references and cycles (counted in Trace::stats,
  // not errors), and builds the indices. O(nodes + edges), plus a sort if source ids do not ascend.
  // kBadInput if a limit was exceeded.
  Result<Trace> Finish();

 private:
  struct DepRow {
    NodeId node;
    DepKind kind = DepKind::kControl;
    bool resolved = false;  // `target` is a NodeId, else a source id
    uint64_t target = 0;
  };

  void CheckSize(std::optional<int64_t>& group_size);
  void SetText(std::vector<StringId>& column, NodeId node, StringId text);
  void SetList(std::vector<ValueListId>& column, NodeId node, ValueListId list);
  void IndexSourceIds();
  void ResolveParents();
  void ResolveDeps();
  void BreakParentCycles();
  void FindCycle();
  void SettleComms();

  Limits limits_;
  const Trace* base_ = nullptr;
  Trace trace_;
  std::vector<std::pair<NodeId, uint64_t>> parent_refs_;  // by node
  std::vector<DepRow> dep_rows_;
  std::vector<std::pair<NodeId, Extra>> extra_rows_;
  bool over_node_limit_ = false;
  bool over_edge_limit_ = false;
};

}  // namespace etude
