#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/container/csr.h"
#include "src/base/container/intern_table.h"
#include "src/base/text/string_pool.h"
#include "src/base/units.h"
#include "src/trace/stats.h"
#include "src/trace/trace_columns.h"
#include "src/trace/trace_traits.h"
#include "src/trace/value.h"
#include "src/trace/words/enums.h"

namespace etude {

class TraceBuilder;

// A fact the reader keeps without understanding it, so that rewriting the file loses nothing.
struct Extra {
  enum class Form : uint8_t {
    kJson,      // `text` is the JSON text of the value
    kProtobuf,  // `text` holds the bytes of a protobuf field, tag included
  };
  StringId key;
  StringId text;
  Form form = Form::kJson;

  friend bool operator==(const Extra&, const Extra&) = default;
};

// Facts of the file as a whole.
struct TraceInfo {
  TraceFormat format = TraceFormat::kUnknown;
  TraceTraits traits;
  std::string schema;  // version text of the file; "" if it gives none
  std::string time;    // wall-clock text of the recording; "" if none
  std::optional<int64_t> pid;
  std::optional<int64_t> start_ts;  // by the observer's clock, in its own unit (milliseconds)
  std::optional<int64_t> finish_ts;
  std::optional<int64_t> rank;
  std::optional<int64_t> world_size;
  // Other top-level facts, key and JSON text (or protobuf bytes) each, in file order.
  std::vector<Extra> extras;

  // Sets the format and its traits. Durations are unchanged.
  void SetFormat(TraceFormat of) {
    const bool exclusive = traits.exclusive_durations;
    format = of;
    traits = TraitsOf(of);
    traits.exclusive_durations = exclusive;
  }
};

// Location of nodes: a thread of a process, or a stream of a device.
struct Lane {
  StringId process;     // pid as text; kNone: unknown
  StringId thread;      // tid as text (Kineto has names as tids); kNone: unknown
  int32_t device = -1;  // -1: none or unknown
  int32_t stream = -1;  // -1: none or unknown

  friend bool operator==(const Lane&, const Lane&) = default;
};

// Process group, as described in the file.
struct ProcessGroup {
  StringId name;
  StringId description;
  StringId backend;
  IntListId ranks;              // empty: all ranks of the job; kNone: not listed
  std::optional<int64_t> size;  // as stated; Trace::GroupSize returns the actual number of ranks

  friend bool operator==(const ProcessGroup&, const ProcessGroup&) = default;
};

// Facts of a communication node, as far as recorded.
struct Comm {
  CollectiveType type = CollectiveType::kUnknown;  // kUnknown for kSend and kRecv
  StringId name;   // as recorded: "allreduce", "all_gather_into_tensor_coalesced"
  StringId group;  // name of the process group
  DType dtype = DType::kUnknown;
  std::optional<Bytes> bytes;  // Chakra's comm_size, or this rank's input
  std::optional<int64_t> in_elements;
  std::optional<int64_t> out_elements;
  IntListId in_split;  // kNone: not a split collective
  IntListId out_split;
  std::optional<int64_t> root;  // rank in the group
  std::optional<int64_t> src;   // kRecv: rank in the job
  std::optional<int64_t> dst;   // kSend: rank in the job
  std::optional<int64_t> tag;
  std::optional<int64_t> group_size;
  std::optional<int64_t> priority;

  // Return the other end of a message of that kind, and the rank's own.
  const std::optional<int64_t>& peer(NodeKind kind) const {
    return kind == NodeKind::kSend ? dst : src;
  }
  std::optional<int64_t>& peer(NodeKind kind) { return kind == NodeKind::kSend ? dst : src; }
  std::optional<int64_t>& self(NodeKind kind) { return kind == NodeKind::kSend ? src : dst; }

  friend bool operator==(const Comm&, const Comm&) = default;
};

// Returns `own`, with missing facts filled in from `other`.
Comm FilledFrom(Comm own, const Comm& other);

// Execution trace: nodes with their nesting, order and arguments, in columns. Immutable, made by
// TraceBuilder; const methods are thread-safe. Node ids are dense, in the order in which the reader
// added the nodes (file order). Times are relative to an origin common to the trace.
class Trace {
 public:
  size_t node_count() const { return columns_.kind.size(); }

  // Identity and kind.
  uint64_t source_id(NodeId node) const { return columns_.source_id[node.index()]; }
  NodeKind kind(NodeId node) const { return columns_.kind[node.index()]; }
  Place place(NodeId node) const { return columns_.place[node.index()]; }
  StringId name_id(NodeId node) const { return columns_.name[node.index()]; }
  std::string_view name(NodeId node) const { return strings_.Get(columns_.name[node.index()]); }

  // Time and location. `duration` includes the node's children unless traits().exclusive_durations
  // is set; `exclusive` never does.
  std::optional<Nanos> start(NodeId node) const { return columns_.start.Get(node.index()); }
  std::optional<Nanos> duration(NodeId node) const { return columns_.duration.Get(node.index()); }
  std::optional<Nanos> exclusive(NodeId node) const { return columns_.exclusive.Get(node.index()); }
  LaneId lane_id(NodeId node) const { return columns_.lane[node.index()]; }
  const Lane& lane(LaneId id) const { return lanes_.Get(id); }
  size_t lane_count() const { return lanes_.size(); }

  // Nesting and order. The parent of a node is its caller; `deps` are the nodes it waits for in
  // addition. `dep_kinds` is parallel to `deps`.
  NodeId parent(NodeId node) const { return columns_.parent[node.index()]; }
  std::span<const NodeId> children(NodeId node) const { return children_[node.index()]; }
  std::span<const NodeId> deps(NodeId node) const { return deps_[node.index()]; }
  std::span<const DepKind> dep_kinds(NodeId node) const { return dep_kinds_[node.index()]; }
  size_t dep_count() const { return deps_.value_count(); }

  // References to nodes missing from the trace, kept for rewriting; ordered by node.
  struct Dangling {
    NodeId node;
    uint64_t source_id = 0;
    DepKind kind = DepKind::kControl;
    bool is_parent = false;

    friend bool operator==(const Dangling&, const Dangling&) = default;
  };
  std::span<const Dangling> dangling() const { return dangling_; }

  // Arguments and results.
  std::span<const Value> inputs(NodeId node) const { return List(columns_.inputs, node); }
  std::span<const Value> outputs(NodeId node) const { return List(columns_.outputs, node); }
  // Return the lists themselves; kNone if the file has none, in contrast to an empty one.
  ValueListId input_list(NodeId node) const { return ListOf(columns_.inputs, node); }
  ValueListId output_list(NodeId node) const { return ListOf(columns_.outputs, node); }
  std::span<const Value> values(ValueListId list) const { return value_lists_.Get(list); }
  const TensorUse& tensor(TensorId id) const { return tensors_.Get(id); }
  size_t tensor_count() const { return tensors_.size(); }
  std::span<const int64_t> ints(IntListId list) const { return int_lists_.Get(list); }
  std::string_view text(StringId id) const { return strings_.Get(id); }
  const StringPool& strings() const { return strings_; }

  // Facts of a host node from PyTorch's observer and profiler; nullopt or kNone if missing.
  std::optional<uint64_t> rf_id(NodeId node) const { return columns_.rf_id.Get(node.index()); }
  std::optional<uint64_t> fw_parent(NodeId node) const {
    return columns_.fw_parent.Get(node.index());
  }
  std::optional<int64_t> seq_id(NodeId node) const { return columns_.seq_id.Get(node.index()); }
  std::optional<uint8_t> scope(NodeId node) const { return columns_.scope.Get(node.index()); }
  std::optional<uint64_t> tid(NodeId node) const { return columns_.tid.Get(node.index()); }
  std::optional<uint64_t> fw_tid(NodeId node) const { return columns_.fw_tid.Get(node.index()); }
  StringId op_schema(NodeId node) const { return TextOf(columns_.op_schema, node); }
  StringId kernel_backend(NodeId node) const { return TextOf(columns_.kernel_backend, node); }
  StringId kernel_file(NodeId node) const { return TextOf(columns_.kernel_file, node); }
  StringId tensor_range(NodeId node) const { return TextOf(columns_.tensor_range, node); }
  // Return texts on integer inputs, see index_statistics.h.
  StringId index_statistics(NodeId node) const { return TextOf(columns_.index_statistics, node); }
  StringId index_values(NodeId node) const { return TextOf(columns_.index_values, node); }
  std::optional<int64_t> correlation(NodeId node) const {
    return columns_.correlation.Get(node.index());
  }
  std::optional<int64_t> external_id(NodeId node) const {
    return columns_.external_id.Get(node.index());
  }

  // Returns the facts of a communication, even if all are unknown; nullptr for most other nodes.
  const Comm* comm(NodeId node) const;
  std::span<const std::pair<NodeId, Comm>> comms() const { return comms_; }
  std::span<const ProcessGroup> process_groups() const { return groups_; }
  // Returns nullptr if the trace does not define the group.
  const ProcessGroup* FindGroup(StringId name) const;
  // Returns the number of ranks in a group; nullopt if unknown. The list of ranks has precedence;
  // an empty list means all ranks of the job. The stated size is used if there is no list, or if
  // the job's size is unknown.
  std::optional<int64_t> GroupSize(const ProcessGroup& group) const;
  // Returns true if the group is known to contain all ranks of the job.
  bool HasAllRanks(const ProcessGroup& group) const;

  std::span<const Extra> extras(NodeId node) const { return extras_[node.index()]; }

  const TraceInfo& info() const { return info_; }
  const TraceTraits& traits() const { return info_.traits; }
  const Stats& stats() const { return stats_; }

  // Returns the first node with this id in the file, or kNone. O(log nodes).
  NodeId Find(uint64_t source_id) const;
  // Returns all nodes sorted by source id; nodes with equal ids stay in trace order.
  std::vector<NodeId> NodesBySourceId() const;
  // Returns true if parents and dependencies together have no cycle.
  bool is_acyclic() const { return cycle_.empty(); }
  // Returns one cycle, if there is any: each node waits for the next, the last for the first.
  std::span<const NodeId> cycle() const { return cycle_; }

  // Returns true if both traces have equal content under equal ids. In info(), only facts common to
  // all processes of a job count: rank, pid and clocks may differ.
  bool SameContent(const Trace& other) const;
  // Returns a hash of the content, equal for traces with equal content, on all machines of one byte
  // order.
  uint64_t ContentHash() const;

  // Return the storage behind the accessors above, for zero-copy access (src/python).
  const TraceColumns& columns() const { return columns_; }
  const Csr<NodeId>& all_deps() const { return deps_; }
  const Csr<DepKind>& all_dep_kinds() const { return dep_kinds_; }
  std::span<const TensorUse> tensors() const { return tensors_.rows(); }
  const IntListPool& int_lists() const { return int_lists_; }

  // Returns the memory of this trace in bytes.
  size_t memory_bytes() const;

 private:
  friend class TraceBuilder;

  std::span<const Value> List(const std::vector<ValueListId>& column, NodeId node) const {
    return node.index() < column.size() ? value_lists_.Get(column[node.index()])
                                        : std::span<const Value>();
  }
  static ValueListId ListOf(const std::vector<ValueListId>& column, NodeId node) {
    return node.index() < column.size() ? column[node.index()] : ValueListId::None();
  }
  static StringId TextOf(const std::vector<StringId>& column, NodeId node) {
    return node.index() < column.size() ? column[node.index()] : StringId::None();
  }

  TraceInfo info_;
  Stats stats_;
  StringPool strings_;
  IntListPool int_lists_;
  ValueListPool value_lists_;
  InternTable<TensorUse, TensorTag> tensors_;
  InternTable<Lane, LaneTag> lanes_;
  std::vector<ProcessGroup> groups_;
  std::unordered_map<StringId, size_t> groups_by_name_;

  TraceColumns columns_;
  std::vector<std::pair<NodeId, Comm>> comms_;  // by node

  Csr<NodeId> children_;
  Csr<NodeId> deps_;
  Csr<DepKind> dep_kinds_;
  Csr<Extra> extras_;
  std::vector<Dangling> dangling_;
  std::vector<NodeId> cycle_;
  // Nodes by source id; empty if source ids ascend with node ids.
  std::vector<NodeId> by_source_id_;
};

// Calls `fn(NodeId)` for each node in id order.
template <typename Fn>
void ForEachNode(const Trace& trace, Fn fn) {
  for (size_t i = 0; i < trace.node_count(); ++i) fn(NodeId::FromIndex(i));
}

// Returns the end time; nullopt unless start and duration are known.
inline std::optional<Nanos> EndOf(const Trace& trace, NodeId node) {
  const auto start = trace.start(node);
  const auto duration = trace.duration(node);
  if (!start || !duration) return std::nullopt;
  return *start + *duration;
}

// Calls `fn(TensorId)` for each tensor in `values`, lists included, in order. `trace` is a Trace or
// its builder.
template <typename TraceOrBuilder, typename Fn>
void ForEachTensor(const TraceOrBuilder& trace, std::span<const Value> values, Fn&& fn) {
  for (const Value& value : values) {
    if (value.kind == ValueKind::kTensor) fn(value.as_tensor());
    if (value.kind == ValueKind::kList) ForEachTensor(trace, trace.values(value.as_list()), fn);
  }
}

}  // namespace etude
