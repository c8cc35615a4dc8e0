#include "src/formats/pytorch_et/et_comm.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "src/formats/profile/comm_kernels.h"
#include "src/formats/profile/process_groups.h"
#include "src/run/calls/callers.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

void AddTensors(const TraceBuilder& builder, std::span<const Value> values, TensorSum& sum) {
  ForEachTensor(builder, values, [&](TensorId tensor) {
    const TensorUse& use = builder.tensor(tensor);
    int64_t elements = 0;
    if (__builtin_add_overflow(sum.elements.value_or(0), use.numel, &elements)) return;
    sum.elements = elements;
    if (sum.dtype == DType::kUnknown) sum.dtype = DTypeFromText(builder.text(use.type));
  });
}

std::vector<uint64_t> StoragesOf(const TraceBuilder& builder, std::span<const Value> values) {
  std::vector<uint64_t> storages;
  ForEachTensor(builder, values, [&](TensorId tensor) {
    const uint64_t storage = builder.tensor(tensor).storage;
    if (storage != 0) storages.push_back(storage);
  });
  std::ranges::sort(storages);
  storages.erase(std::ranges::unique(storages).begin(), storages.end());
  return storages;
}

void FillElements(const TraceBuilder& builder, std::span<const Value> inputs,
                  std::span<const Value> outputs, CommFacts& facts) {
  TensorSum in;
  TensorSum out;
  AddTensors(builder, inputs, in);
  AddTensors(builder, outputs, out);
  if (!facts.in_elements) facts.in_elements = in.elements;
  if (!facts.out_elements) facts.out_elements = out.elements;
  if (facts.dtype == DType::kUnknown) facts.dtype = in.elements ? in.dtype : out.dtype;
}

// Returns the position of the collective's name in record_param_comms: the text before the two
// lists of splits.
std::optional<size_t> FindName(std::span<const Value> inputs) {
  for (size_t i = 0; i + 2 < inputs.size(); ++i) {
    if (inputs[i].kind == ValueKind::kString && inputs[i + 1].kind == ValueKind::kList &&
        inputs[i + 2].kind == ValueKind::kList) {
      return i;
    }
  }
  return std::nullopt;
}

// Arguments of c10d operators with a rank's input to collectives.
constexpr auto kSourceArguments = std::to_array<std::string_view>(
    {"input_tensors", "input_tensor", "input", "inputs", "tensors"});

// For these operators Gloo reduces a copy of the input.
constexpr auto kCopying = std::to_array<std::string_view>({
    "c10d::reduce_scatter_",
    "c10d::_reduce_scatter_base_",
    "c10d::reduce_scatter_tensor_coalesced_",
});

}  // namespace

void EtCommReader::Add(NodeId node, const NodeRow& row, CommFacts facts,
                       std::span<const uint64_t> control_deps) {
  const std::string_view name = builder_.text(row.name);
  if (row.place == Place::kDevice) {
    if (IsCommKernel(name)) {
      AddKernel(node, row, facts);
    } else if (facts.any) {
      AddStated(node, facts);
    }
  } else if (name == kRecordParamComms) {
    AddRecorded(node, row, facts);
  } else if (name == kProcessGroupInit) {
    builder_.SetKind(node, NodeKind::kMetadata);
    AddGroups(row);
  } else if (facts.any) {
    AddStated(node, facts);
  } else if (row.op_schema) {
    AddCall(node, row, facts);
  } else if (const std::string_view label = CommOfLabel(name); !label.empty()) {
    AddLabel(node, row, label, std::move(facts), control_deps);
  }
}

void EtCommReader::AddStated(NodeId node, const CommFacts& facts) {
  has_stated_ = true;
  builder_.SetComm(node, MakeComm(builder_, facts));
}

// Backend labels below these calls have neither partner nor tag nor root.
void EtCommReader::AddCall(NodeId node, const NodeRow& row, const CommFacts& facts) {
  const std::string_view schema = builder_.text(row.op_schema);
  const std::string_view name = BaseOperatorName(schema);
  if (!IsC10dOperator(name)) return;
  const std::span<const Value> inputs = builder_.values(row.inputs);
  const auto argument = [&](std::string_view of) {
    return IntAt(inputs, ArgumentPosition(schema, of).value_or(inputs.size()));
  };
  const auto tensors = [&](std::span<const std::string_view> names) {
    TensorSum sum;
    for (const std::string_view of : names) {
      const auto at = ArgumentPosition(schema, of);
      if (at && *at < inputs.size()) AddTensors(builder_, inputs.subspan(*at, 1), sum);
    }
    return sum;
  };
  const std::string_view rank = name == "c10d::send"              ? "dst"
                                : name.starts_with("c10d::recv_") ? "src"
                                                                  : "root_rank";
  IssuedCall call{.id = row.source_id,
                  .node = node,
                  .kind = PointToPointFromName(name).value_or(NodeKind::kCollective),
                  .group = facts.group.empty() ? StringId() : builder_.Intern(facts.group),
                  .group_size = facts.group_size,
                  .storages = StoragesOf(builder_, inputs),
                  .sizes = {},
                  .works_on_copy = std::ranges::count(kCopying, name) != 0,
                  .rank = argument(rank),
                  .tag = argument("tag"),
                  .in = tensors(kSourceArguments),
                  .out = tensors(kResultArguments)};
  for (size_t i = 0; call.works_on_copy && i < inputs.size(); ++i) {
    TensorSum sum;
    AddTensors(builder_, inputs.subspan(i, 1), sum);
    if (sum.elements.value_or(0) != 0) call.sizes.push_back(*sum.elements);
  }
  if (call.kind == NodeKind::kCollective) {
    call.type = CollectiveFromName(name).value_or(CollectiveType::kUnknown);
  }
  if (call.rank || call.tag || call.type != CollectiveType::kUnknown) {
    calls_.push_back(std::move(call));
  }
}

// If several calls have one id, the first counts.
void EtCommReader::FindCalls() {
  std::ranges::stable_sort(calls_, {}, &IssuedCall::id);
  calls_.erase(std::ranges::unique(calls_, {}, &IssuedCall::id).begin(), calls_.end());
  std::ranges::stable_sort(labels_, {}, &BackendLabel::id);
  found_ = FindCallsOfLabels(calls_, labels_);
}

const IssuedCall* EtCommReader::CallOf(uint64_t label) const {
  const auto at = std::ranges::lower_bound(labels_, label, {}, &BackendLabel::id);
  if (at == labels_.end() || at->id != label) return nullptr;
  const std::optional<size_t> call = found_.calls[static_cast<size_t>(at - labels_.begin())];
  return call ? &calls_[*call] : nullptr;
}

// PyTorch's observer occasionally loses Gloo labels: the call then stands for its communication.
// Calls need none if the backend records its work in another way, or if facts were stated in the
// trace.
void EtCommReader::AddCallsWithoutLabel() {
  if (!recorded_ids_.empty() || has_stated_) return;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const IssuedCall& call = calls_[i];
    if (found_.has_label[i] || call.type == CollectiveType::kUnknown) continue;
    CommFacts facts;
    facts.type = call.type;
    facts.dtype = call.in.elements ? call.in.dtype : call.out.dtype;
    facts.in_elements = call.in.elements;
    facts.out_elements = call.out.elements;
    if (HasRoot(call.type)) facts.root = call.rank;
    facts.group_size = SizeOf(StringId());
    builder_.SetKind(call.node, NodeKind::kCollective);
    builder_.SetComm(call.node, MakeComm(builder_, facts));
  }
}

void EtCommReader::TakeFromCall(BackendLabel& label, const IssuedCall& call) {
  Comm& comm = label.comm;
  if (!comm.group && call.group) {
    comm.group = call.group;
    comm.group_size = call.group_size;
    SizeScatter(comm, comm.group_size);
  }
  if (label.kind == NodeKind::kCollective) {
    if (HasRoot(comm.type) && !comm.root) comm.root = call.rank;
    if (!comm.out_elements && comm.type == CollectiveType::kScatter) {
      comm.out_elements = call.out.elements;
      if (comm.dtype == DType::kUnknown) comm.dtype = call.out.dtype;
      SizeScatter(comm, comm.group_size ? comm.group_size : SizeOf(comm.group));
    }
    return;
  }
  if (!comm.tag) comm.tag = call.tag;
  std::optional<int64_t>& peer = comm.peer(label.kind);
  if (!peer && call.rank) peer = RankOfJob(comm.group, *call.rank);
}

std::optional<int64_t> EtCommReader::RankOfJob(const ProcessGroup& group,
                                               int64_t rank_in_group) const {
  const std::span<const int64_t> ranks = builder_.ints(group.ranks);
  if (static_cast<uint64_t>(rank_in_group) < ranks.size()) {
    return ranks[static_cast<size_t>(rank_in_group)];
  }
  if (ranks.empty() && builder_.HasAllRanks(group)) return rank_in_group;
  return std::nullopt;
}

std::optional<int64_t> EtCommReader::RankOfJob(StringId name, int64_t rank_in_group) {
  if (rank_in_group < 0) return std::nullopt;
  if (name) {
    const ProcessGroup* group = builder_.FindGroup(name);
    return group == nullptr ? std::nullopt : RankOfJob(*group, rank_in_group);
  }
  const auto [known, is_new] = ranks_in_all_.try_emplace(rank_in_group);
  if (is_new) known->second = RankInAll(rank_in_group);
  return known->second;
}

// Returns the rank in the job for a label without a group, which may belong to any large enough
// group: known if it is the same in all of them.
std::optional<int64_t> EtCommReader::RankInAll(int64_t rank_in_group) const {
  std::optional<int64_t> rank;
  for (const ProcessGroup& group : builder_.process_groups()) {
    if (builder_.GroupSize(group).value_or(INT64_MAX) <= rank_in_group) continue;
    const std::optional<int64_t> in_group = RankOfJob(group, rank_in_group);
    if (!in_group || (rank && rank != in_group)) return std::nullopt;
    rank = in_group;
  }
  return rank;
}

// Returns the size common to all groups for a communication without a group.
std::optional<int64_t> EtCommReader::SizeOf(StringId name) const {
  if (name) {
    const ProcessGroup* group = builder_.FindGroup(name);
    return group == nullptr ? std::nullopt : builder_.GroupSize(*group);
  }
  std::optional<int64_t> size;
  for (const ProcessGroup& group : builder_.process_groups()) {
    const std::optional<int64_t> members = builder_.GroupSize(group);
    if (!members || (size && size != members)) return std::nullopt;
    size = members;
  }
  return size;
}

void EtCommReader::AddRecorded(NodeId node, const NodeRow& row, CommFacts& facts) {
  recorded_ids_.push_back(row.source_id);
  const Arguments arguments = ReadArguments(row, facts);
  builder_.SetKind(node, KindOfCommunication(facts.name));
  AddGroupOf(builder_, facts);
  SetComm(node, MakeComm(builder_, facts), arguments);
}

void EtCommReader::AddKernel(NodeId node, const NodeRow& row, CommFacts& facts) {
  const Arguments arguments = ReadArguments(row, facts);
  if (facts.name.empty()) {
    // Below a backend's label, only the kernel's own name and the label's tensors are known.
    FillElements(builder_, builder_.values(row.inputs), builder_.values(row.outputs), facts);
  }
  Comm comm = MakeComm(builder_, facts);
  if (comm.type == CollectiveType::kUnknown) {
    comm.type = CollectiveOfKernel(builder_.text(row.name));
  }
  builder_.SetKind(node, PointToPointFromName(facts.name).value_or(NodeKind::kCollective));
  SetComm(node, comm, arguments);
}

void EtCommReader::SetComm(NodeId node, const Comm& comm, const Arguments& arguments) {
  builder_.SetComm(node, comm);
  if (!arguments.group && !arguments.peer) return;
  unsettled_.push_back({.node = node, .comm = comm, .arguments = arguments});
}

void EtCommReader::AddLabel(NodeId node, const NodeRow& row, std::string_view communication,
                            CommFacts facts, std::span<const uint64_t> control_deps) {
  facts.name = communication;
  FillElements(builder_, builder_.values(row.inputs), builder_.values(row.outputs), facts);
  TensorSum tensors;
  AddTensors(builder_, builder_.values(row.inputs), tensors);
  labels_.push_back({.id = row.source_id,
                     .node = node,
                     .kind = KindOfCommunication(communication),
                     .comm = MakeComm(builder_, facts),
                     .parent = row.parent,
                     .stated = {control_deps.begin(), control_deps.end()},
                     .storages = StoragesOf(builder_, builder_.values(row.inputs)),
                     .elements = tensors.elements});
}

EtCommReader::Arguments EtCommReader::ReadArguments(const NodeRow& row, CommFacts& facts) const {
  const std::span<const Value> inputs = builder_.values(row.inputs);
  const std::optional<size_t> name = FindName(inputs);
  Arguments said;
  if (!name) return said;
  if (facts.name.empty()) facts.name = builder_.text(inputs[*name].as_text());
  if (*name >= 3) {
    said.group = ReadGroup(inputs[*name - 2], facts);
    said.peer = ReadRank(inputs[*name - 1], facts);
  }
  // The tensors, if any, precede sequence number, group and rank.
  if (*name >= 4) {
    FillElements(builder_, inputs.first(*name - 3), builder_.values(row.outputs), facts);
  }
  if (facts.in_split.empty()) facts.in_split = IntsOf(inputs[*name + 1]);
  if (facts.out_split.empty()) facts.out_split = IntsOf(inputs[*name + 2]);
  // First rank, stride and size of the group follow the splits; old versions have only the size, or
  // nothing.
  const size_t rest = *name + 3;
  const bool ranks_given = inputs.size() >= rest + 3;
  if (ranks_given && !facts.rank_start) facts.rank_start = IntAt(inputs, rest);
  if (ranks_given && !facts.rank_stride) facts.rank_stride = IntAt(inputs, rest + 1);
  if (!facts.group_size) facts.group_size = IntAt(inputs, ranks_given ? rest + 2 : rest);
  if (said.peer) {
    const bool sends = PointToPointFromName(facts.name) == NodeKind::kSend;
    std::optional<int64_t>& rank = sends ? facts.destination : facts.source;
    rank = RankOfMember(facts, *said.peer);
    if (rank) said.peer.reset();
  }
  return said;
}

std::optional<int64_t> EtCommReader::ReadGroup(const Value& value, CommFacts& facts) const {
  if (!facts.group.empty()) return std::nullopt;
  if (value.kind == ValueKind::kInt) return value.as_int();
  if (value.kind == ValueKind::kString) facts.group = builder_.text(value.as_text());
  if (value.kind != ValueKind::kList) return std::nullopt;
  const std::span<const Value> pair = builder_.values(value.as_list());
  if (pair.size() == 2 && pair[0].kind == ValueKind::kString &&
      pair[1].kind == ValueKind::kString) {
    facts.group = builder_.text(pair[0].as_text());
    if (facts.group_description.empty()) {
      facts.group_description = builder_.text(pair[1].as_text());
    }
  }
  return std::nullopt;
}

// The argument is the root, the other side, or the rank itself, depending on the collective. It is
// a rank in the group, as in ProcessGroupNCCL::send and recv; Kineto's "Dst Rank" is a rank in the
// job.
std::optional<int64_t> EtCommReader::ReadRank(const Value& value, CommFacts& facts) const {
  if (value.kind != ValueKind::kInt) return std::nullopt;
  const auto point_to_point = PointToPointFromName(facts.name);
  if (point_to_point == NodeKind::kSend && !facts.destination) return value.as_int();
  if (point_to_point == NodeKind::kRecv && !facts.source) return value.as_int();
  if (HasRoot(CollectiveFromName(facts.name).value_or(CollectiveType::kUnknown))) {
    facts.root = value.as_int();
  }
  return std::nullopt;
}

std::optional<int64_t> EtCommReader::IntAt(std::span<const Value> values, size_t index) const {
  if (index >= values.size() || values[index].kind != ValueKind::kInt) return std::nullopt;
  return values[index].as_int();
}

std::vector<int64_t> EtCommReader::IntsOf(const Value& list) const {
  std::vector<int64_t> ints;
  for (const Value& value : builder_.values(list.as_list())) {
    if (value.kind != ValueKind::kInt) return {};
    ints.push_back(value.as_int());
  }
  return ints;
}

// The node's one argument is a JSON list of groups.
void EtCommReader::AddGroups(const NodeRow& row) {
  const std::span<const Value> inputs = builder_.values(row.inputs);
  if (inputs.size() != 1 || inputs[0].kind != ValueKind::kString) return;
  const auto groups = ParseProcessGroups(builder_, builder_.text(inputs[0].as_text()));
  if (!groups) {
    builder_.stats().Count(Stat::kUnknownValue);
    return;
  }
  for (const NumberedGroup& entry : *groups) {
    builder_.AddProcessGroup(entry.group);
    if (entry.number) groups_by_number_.emplace(*entry.number, entry.group.name);
  }
}

void EtCommReader::Finish() {
  for (Unsettled& row : unsettled_) {
    if (row.arguments.group) {
      const auto group = groups_by_number_.find(*row.arguments.group);
      if (group != groups_by_number_.end()) row.comm.group = group->second;
    }
    if (row.arguments.peer) {
      row.comm.peer(KindOfCommunication(builder_.text(row.comm.name))) =
          RankOfJob(row.comm.group, *row.arguments.peer);
    }
    builder_.SetComm(row.node, row.comm);
  }
  std::ranges::sort(recorded_ids_);
  FindCalls();
  for (size_t i = 0; i < labels_.size(); ++i) {
    BackendLabel& label = labels_[i];
    const IssuedCall* call = found_.calls[i] ? &calls_[*found_.calls[i]] : nullptr;
    if (call != nullptr && call->id != label.parent && label.stated.empty()) {
      builder_.AddDep(label.node, call->id, DepKind::kControl);
    }
    if (label.parent && std::ranges::binary_search(recorded_ids_, *label.parent)) continue;
    if (call != nullptr) TakeFromCall(label, *call);
    builder_.SetKind(label.node, label.kind);
    builder_.SetComm(label.node, label.comm);
  }
  AddCallsWithoutLabel();
}

}  // namespace etude
