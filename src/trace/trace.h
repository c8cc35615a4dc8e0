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

// What a file says of itself as a whole.
struct TraceInfo {
  TraceFormat format = TraceFormat::kUnknown;
  TraceTraits traits;
  std::string schema;  // version text of the file; "" if it gives none
  std::string time;    // wall-clock text of the recording; "" if none
  std::optional<int64_t> pid;
  std::optional<int64_t> start_ts;  // clock of the observer, in its own unit (milliseconds)
  std::optional<int64_t> finish_ts;
  std::optional<int64_t> rank;
  std::optional<int64_t> world_size;
  // Other top-level facts, key and JSON text (or protobuf bytes) each, in file order.
  std::vector<Extra> extras;

  // Sets the format and the traits that come with it; durations stay what they are.
  void SetFormat(TraceFormat of) {
    const bool exclusive = traits.exclusive_durations;
    format = of;
    traits = TraitsOf(of);
    traits.exclusive_durations = exclusive;
  }
};

// Where nodes run: a thread of a process, or a stream of a device.
struct Lane {
  StringId process;     // pid as text; kNone unknown
  StringId thread;      // tid as text (Kineto has names as tids); kNone unknown
  int32_t device = -1;  // -1: none or unknown
  int32_t stream = -1;  // -1: none or unknown

  friend bool operator==(const Lane&, const Lane&) = default;
};

// A process group, as the file describes it.
struct ProcessGroup {
  StringId name;
  StringId description;
  StringId backend;
  IntListId ranks;              // empty: all ranks of the job; kNone: not listed
  std::optional<int64_t> size;  // as stated: Trace::GroupSize says how many ranks there are

  friend bool operator==(const ProcessGroup&, const ProcessGroup&) = default;
};

// The facts of a communication node, as far as the file has them.
struct Comm {
  CollectiveType type = CollectiveType::kUnknown;  // kUnknown for kSend and kRecv
  StringId name;   // as recorded: "allreduce", "all_gather_into_tensor_coalesced"
  StringId group;  // name of the process group
  DType dtype = DType::kUnknown;
  std::optional<Bytes> bytes;  // Chakra's comm_size, or what this rank puts in
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

  // Of a message of that kind: the other side, to or from which it goes, and the rank's own.
  const std::optional<int64_t>& peer(NodeKind kind) const {
    return kind == NodeKind::kSend ? dst : src;
  }
  std::optional<int64_t>& peer(NodeKind kind) { return kind == NodeKind::kSend ? dst : src; }
  std::optional<int64_t>& self(NodeKind kind) { return kind == NodeKind::kSend ? src : dst; }

  friend bool operator==(const Comm&, const Comm&) = default;
};

// `own` with what `other` says of the same communication where it is silent itself.
Comm FilledFrom(Comm own, const Comm& other);

// An execution trace: nodes (what ran), their nesting, order and arguments, in columns. Immutable,
// made by TraceBuilder; const methods may be called from several threads. Node ids are dense, in
// the order in which the reader added the nodes (file order); times are relative to an origin
// common to the trace.
class Trace {
 public:
  size_t node_count() const { return columns_.kind.size(); }

  // What the node is.
  uint64_t source_id(NodeId node) const { return columns_.source_id[node.index()]; }
  NodeKind kind(NodeId node) const { return columns_.kind[node.index()]; }
  Place place(NodeId node) const { return columns_.place[node.index()]; }
  StringId name_id(NodeId node) const { return columns_.name[node.index()]; }
  std::string_view name(NodeId node) const { return strings_.Get(columns_.name[node.index()]); }

  // When and where it ran. `duration` includes the node's children unless
  // traits().exclusive_durations; `exclusive` never does.
  std::optional<Nanos> start(NodeId node) const { return columns_.start.Get(node.index()); }
  std::optional<Nanos> duration(NodeId node) const { return columns_.duration.Get(node.index()); }
  std::optional<Nanos> exclusive(NodeId node) const { return columns_.exclusive.Get(node.index()); }
  LaneId lane_id(NodeId node) const { return columns_.lane[node.index()]; }
  const Lane& lane(LaneId id) const { return lanes_.Get(id); }
  size_t lane_count() const { return lanes_.size(); }

  // Nesting and order. The caller of a node is its parent; `deps` are the nodes it waits for beyond
  // its parent. Kinds are parallel to the nodes.
  NodeId parent(NodeId node) const { return columns_.parent[node.index()]; }
  std::span<const NodeId> children(NodeId node) const { return children_[node.index()]; }
  std::span<const NodeId> deps(NodeId node) const { return deps_[node.index()]; }
  std::span<const DepKind> dep_kinds(NodeId node) const { return dep_kinds_[node.index()]; }
  size_t dep_count() const { return deps_.value_count(); }

  // References that name no node of the trace, kept for rewriting; ordered by node.
  struct Dangling {
    NodeId node;
    uint64_t source_id = 0;
    DepKind kind = DepKind::kControl;
    bool is_parent = false;

    friend bool operator==(const Dangling&, const Dangling&) = default;
  };
  std::span<const Dangling> dangling() const { return dangling_; }

  // Arguments, results and their parts.
  std::span<const Value> inputs(NodeId node) const { return List(columns_.inputs, node); }
  std::span<const Value> outputs(NodeId node) const { return List(columns_.outputs, node); }
  // The lists themselves; kNone where the file gives none, which is not the same as an empty one.
  ValueListId input_list(NodeId node) const { return ListOf(columns_.inputs, node); }
  ValueListId output_list(NodeId node) const { return ListOf(columns_.outputs, node); }
  std::span<const Value> values(ValueListId list) const { return value_lists_.Get(list); }
  const TensorUse& tensor(TensorId id) const { return tensors_.Get(id); }
  size_t tensor_count() const { return tensors_.size(); }
  std::span<const int64_t> ints(IntListId list) const { return int_lists_.Get(list); }
  std::string_view text(StringId id) const { return strings_.Get(id); }
  const StringPool& strings() const { return strings_; }

  // What PyTorch's observer and profiler say of a host node; nullopt or kNone where they do not.
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
  // Of its integer inputs, see index_statistics.h.
  StringId index_statistics(NodeId node) const { return TextOf(columns_.index_statistics, node); }
  StringId index_values(NodeId node) const { return TextOf(columns_.index_values, node); }
  std::optional<int64_t> correlation(NodeId node) const {
    return columns_.correlation.Get(node.index());
  }
  std::optional<int64_t> external_id(NodeId node) const {
    return columns_.external_id.Get(node.index());
  }

  // Facts of a communication, if only that nothing is known of it; nullptr for most other nodes.
  const Comm* comm(NodeId node) const;
  std::span<const std::pair<NodeId, Comm>> comms() const { return comms_; }
  std::span<const ProcessGroup> process_groups() const { return groups_; }
  // nullptr: the trace does not define it.
  const ProcessGroup* FindGroup(StringId name) const;
  // How many ranks a group has; nullopt: unknown. The list of them comes first, which is that of
  // the job if it is empty; the stated size counts where there is no list, or none of the job.
  std::optional<int64_t> GroupSize(const ProcessGroup& group) const;
  // Whether it is known to have all ranks of the job.
  bool HasAllRanks(const ProcessGroup& group) const;

  std::span<const Extra> extras(NodeId node) const { return extras_[node.index()]; }

  const TraceInfo& info() const { return info_; }
  const TraceTraits& traits() const { return info_.traits; }
  const Stats& stats() const { return stats_; }

  // The node with this id in the file (the first one, if there are several), or kNone. O(log
  // nodes).
  NodeId Find(uint64_t source_id) const;
  // All nodes by these ids; those with the same id in their order in the trace.
  std::vector<NodeId> NodesBySourceId() const;
  // True if parents and dependencies together have no cycle.
  bool is_acyclic() const { return cycle_.empty(); }
  // One cycle, if there is any: each node waits for the next, the last for the first.
  std::span<const NodeId> cycle() const { return cycle_; }

  // Whether both say the same of the same nodes under the same ids. Of info() only what is the same
  // for all processes of a job counts: rank, pid and clocks may differ.
  bool SameContent(const Trace& other) const;
  // Traces of the same content have the same hash, on every machine of one byte order.
  uint64_t ContentHash() const;

  // What is behind the accessors above, for code that hands it on without copying it (src/python).
  const TraceColumns& columns() const { return columns_; }
  const Csr<NodeId>& all_deps() const { return deps_; }
  const Csr<DepKind>& all_dep_kinds() const { return dep_kinds_; }
  std::span<const TensorUse> tensors() const { return tensors_.rows(); }
  const IntListPool& int_lists() const { return int_lists_; }

  // Bytes this trace holds.
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
  // Nodes by source id, empty while source ids ascend with node ids.
  std::vector<NodeId> by_source_id_;
};

// Calls `fn(NodeId)` for each node in id order.
template <typename Fn>
void ForEachNode(const Trace& trace, Fn fn) {
  for (size_t i = 0; i < trace.node_count(); ++i) fn(NodeId::FromIndex(i));
}

// When it ended; nullopt unless its start and its duration are known.
inline std::optional<Nanos> EndOf(const Trace& trace, NodeId node) {
  const auto start = trace.start(node);
  const auto duration = trace.duration(node);
  if (!start || !duration) return std::nullopt;
  return *start + *duration;
}

// Calls `fn(TensorId)` for each tensor in `values`, lists included, in order. Of a Trace or of the
// builder of one.
template <typename TraceOrBuilder, typename Fn>
void ForEachTensor(const TraceOrBuilder& trace, std::span<const Value> values, Fn&& fn) {
  for (const Value& value : values) {
    if (value.kind == ValueKind::kTensor) fn(value.as_tensor());
    if (value.kind == ValueKind::kList) ForEachTensor(trace, trace.values(value.as_list()), fn);
  }
}

}  // namespace etude
