#include "src/trace/trace_copy.h"

#include <algorithm>

#include "src/trace/carried_stats.h"

namespace etude {
namespace {

// Returns the entry of `table` for `id`; if it is missing, sets it to the result of `make`.
template <typename IdType, typename Make>
IdType Remembered(std::vector<IdType>& table, IdType id, Make make) {
  if (!id) return id;
  if (id.index() >= table.size()) table.resize(std::max(id.index() + 1, table.size() * 2));
  if (!table[id.index()]) {
    const IdType made = make();
    table[id.index()] = made;
  }
  return table[id.index()];
}

}  // namespace

bool FoundByBuilder(Stat stat) {
  return stat == Stat::kDuplicateId || stat == Stat::kDanglingParent ||
         stat == Stat::kDanglingDependency || stat == Stat::kParentCycle ||
         stat == Stat::kDependencyCycle;
}

TraceCopy::TraceCopy(const Trace& from, TraceBuilder& to)
    : from_(from), to_(to), same_tables_(to.has_tables_of(from)) {
  if (same_tables_) return;
  strings_.resize(from.strings().size());
  tensors_.resize(from.tensor_count());
  lanes_.resize(from.lane_count());
}

StringId TraceCopy::Text(StringId id) {
  if (same_tables_) return id;
  return Remembered(strings_, id, [&] { return to_.Intern(from_.text(id)); });
}

IntListId TraceCopy::Ints(IntListId id) {
  if (same_tables_) return id;
  return Remembered(ints_, id, [&] { return to_.InternInts(from_.ints(id)); });
}

LaneId TraceCopy::LaneOf(LaneId id) {
  if (same_tables_) return id;
  return Remembered(lanes_, id, [&] { return to_.InternLane(MakeLane(from_.lane(id))); });
}

Lane TraceCopy::MakeLane(const Lane& lane) {
  Lane copy = lane;
  copy.process = Text(lane.process);
  copy.thread = Text(lane.thread);
  return copy;
}

TensorId TraceCopy::Tensor(TensorId id) {
  if (same_tables_) return id;
  return Remembered(tensors_, id, [&] {
    TensorUse use = from_.tensor(id);
    use.device = Text(use.device);
    use.type = Text(use.type);
    use.shape = Ints(use.shape);
    use.strides = Ints(use.strides);
    return to_.InternTensor(use);
  });
}

Value TraceCopy::MakeValue(const Value& value) {
  Value copy = value;
  copy.type = Text(value.type);
  switch (value.kind) {
    case ValueKind::kNone:
    case ValueKind::kBool:
    case ValueKind::kInt:
    case ValueKind::kDouble: break;
    case ValueKind::kString:
    case ValueKind::kDevice:
    case ValueKind::kOpaque:
    case ValueKind::kRaw: copy.payload = Text(value.as_text()).value(); break;
    case ValueKind::kTensor: copy.payload = Tensor(value.as_tensor()).value(); break;
    case ValueKind::kList: copy.payload = Values(value.as_list()).value(); break;
  }
  return copy;
}

// Lists contain only earlier lists, so the recursion ends, within the reader's depth limit.
ValueListId TraceCopy::Values(ValueListId id) {
  if (same_tables_) return id;
  return Remembered(values_, id, [&] {
    std::vector<Value> copies;
    for (const Value& value : from_.values(id)) copies.push_back(MakeValue(value));
    return to_.InternValues(copies);
  });
}

Comm TraceCopy::MakeComm(const Comm& comm) {
  Comm copy = comm;
  copy.name = Text(comm.name);
  copy.group = Text(comm.group);
  copy.in_split = Ints(comm.in_split);
  copy.out_split = Ints(comm.out_split);
  return copy;
}

ProcessGroup TraceCopy::MakeGroup(const ProcessGroup& group) {
  ProcessGroup copy = group;
  copy.name = Text(group.name);
  copy.description = Text(group.description);
  copy.backend = Text(group.backend);
  copy.ranks = Ints(group.ranks);
  return copy;
}

Extra TraceCopy::MakeExtra(const Extra& extra) {
  return {.key = Text(extra.key), .text = Text(extra.text), .form = extra.form};
}

void TraceCopy::CopyInfo() {
  to_.info() = from_.info();
  for (Extra& extra : to_.info().extras) extra = MakeExtra(extra);
}

void TraceCopy::AddGroups() {
  for (const ProcessGroup& group : from_.process_groups()) to_.AddProcessGroup(MakeGroup(group));
}

void TraceCopy::AddStats() {
  const Stats met = CarriedStats(from_);
  for (const StatInfo& info : StatTable()) {
    if (!FoundByBuilder(info.stat)) to_.stats().Count(info.stat, met[info.stat]);
  }
}

void TraceCopy::CountRenumbered() {
  to_.stats().Count(Stat::kRenumberedId, from_.stats()[Stat::kDuplicateId]);
}

NodeRow TraceCopy::Row(NodeId node) {
  NodeRow row;
  row.source_id = from_.source_id(node);
  row.kind = from_.kind(node);
  row.place = from_.place(node);
  row.name = Text(from_.name_id(node));
  row.lane = LaneOf(from_.lane_id(node));
  row.start = from_.start(node);
  row.duration = from_.duration(node);
  row.exclusive = from_.exclusive(node);
  row.inputs = Values(from_.input_list(node));
  row.outputs = Values(from_.output_list(node));
  row.rf_id = from_.rf_id(node);
  row.fw_parent = from_.fw_parent(node);
  row.seq_id = from_.seq_id(node);
  row.scope = from_.scope(node);
  row.tid = from_.tid(node);
  row.fw_tid = from_.fw_tid(node);
  row.op_schema = Text(from_.op_schema(node));
  row.kernel_backend = Text(from_.kernel_backend(node));
  row.kernel_file = Text(from_.kernel_file(node));
  row.tensor_range = Text(from_.tensor_range(node));
  row.index_statistics = Text(from_.index_statistics(node));
  row.index_values = Text(from_.index_values(node));
  row.correlation = from_.correlation(node);
  row.external_id = from_.external_id(node);
  return row;
}

void TraceCopy::AddFacts(NodeId from, NodeId to) {
  if (const Comm* comm = from_.comm(from)) to_.SetComm(to, MakeComm(*comm));
  for (const Extra& extra : from_.extras(from)) to_.AddExtra(to, MakeExtra(extra));
}

Result<Trace> CopyTrace(const Trace& from, TraceBuilder& to, const TraceChange& change) {
  TraceCopy copy(from, to);
  copy.CopyInfo();
  if (change.info) change.info(to.info());
  for (const ProcessGroup& group : from.process_groups()) {
    ProcessGroup made = copy.MakeGroup(group);
    if (change.group) change.group(made);
    to.AddProcessGroup(made);
  }
  for (const StatInfo& info : StatTable()) {
    if (!FoundByBuilder(info.stat)) to.stats().Count(info.stat, from.stats()[info.stat]);
  }
  to.Reserve(from.node_count());
  ForEachNode(from, [&](NodeId node) {
    NodeRow row = copy.Row(node);
    // References to a shared id mean its first node, as when the trace was made.
    if (const NodeId parent = from.parent(node)) row.parent = from.source_id(parent);
    std::optional<Comm> comm;
    if (const Comm* known = from.comm(node)) comm = copy.MakeComm(*known);
    if (change.node) change.node(node, row, comm);
    to.AddNode(row);
    if (comm) to.SetComm(node, *comm);
    for (const Extra& extra : from.extras(node)) to.AddExtra(node, copy.MakeExtra(extra));
  });
  ForEachNode(from, [&](NodeId node) {
    const auto deps = from.deps(node);
    const auto kinds = from.dep_kinds(node);
    for (size_t i = 0; i < deps.size(); ++i) to.AddDep(node, deps[i], kinds[i]);
  });
  for (const Trace::Dangling& dangling : from.dangling()) {
    if (dangling.is_parent) {
      to.SetParent(dangling.node, dangling.source_id);
    } else {
      to.AddDep(dangling.node, dangling.source_id, dangling.kind);
    }
  }
  return to.Finish();
}

}  // namespace etude
