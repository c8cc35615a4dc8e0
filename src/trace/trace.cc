#include "src/trace/trace.h"

#include <algorithm>

namespace etude {

std::string_view Name(TraceFormat format) {
  switch (format) {
    case TraceFormat::kUnknown: return "unknown";
    case TraceFormat::kPyTorchEt: return "pytorch-et";
    case TraceFormat::kKineto: return "kineto";
    case TraceFormat::kLinked: return "linked";
    case TraceFormat::kChakra: return "chakra";
    case TraceFormat::kNative: return "native";
  }
  return "unknown";
}

Comm FilledFrom(Comm own, const Comm& other) {
  const auto fill = [](auto& to, const auto& from) {
    if (!to) to = from;
  };
  if (own.type == CollectiveType::kUnknown) own.type = other.type;
  if (own.dtype == DType::kUnknown) own.dtype = other.dtype;
  fill(own.name, other.name);
  fill(own.group, other.group);
  fill(own.bytes, other.bytes);
  fill(own.in_elements, other.in_elements);
  fill(own.out_elements, other.out_elements);
  fill(own.in_split, other.in_split);
  fill(own.out_split, other.out_split);
  fill(own.root, other.root);
  fill(own.src, other.src);
  fill(own.dst, other.dst);
  fill(own.tag, other.tag);
  fill(own.group_size, other.group_size);
  fill(own.priority, other.priority);
  return own;
}

const Comm* Trace::comm(NodeId node) const {
  const auto it = std::ranges::lower_bound(comms_, node, {}, &std::pair<NodeId, Comm>::first);
  return it != comms_.end() && it->first == node ? &it->second : nullptr;
}

NodeId Trace::Find(uint64_t source_id) const {
  if (by_source_id_.empty()) {
    const auto it = std::ranges::lower_bound(source_id_, source_id);
    if (it == source_id_.end() || *it != source_id) return NodeId::None();
    return NodeId::FromIndex(static_cast<size_t>(it - source_id_.begin()));
  }
  const auto it = std::ranges::lower_bound(by_source_id_, source_id, {},
                                           [&](NodeId node) { return source_id_[node.index()]; });
  if (it == by_source_id_.end() || source_id_[it->index()] != source_id) return NodeId::None();
  return *it;
}

std::vector<NodeId> Trace::NodesBySourceId() const {
  if (!by_source_id_.empty()) return by_source_id_;
  std::vector<NodeId> nodes(node_count());
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i] = NodeId::FromIndex(i);
  return nodes;
}

const ProcessGroup* Trace::FindGroup(StringId name) const {
  const auto found = groups_by_name_.find(name);
  return found == groups_by_name_.end() ? nullptr : &groups_[found->second];
}

std::optional<int64_t> Trace::GroupSize(const ProcessGroup& group) const {
  const std::span<const int64_t> listed = ints(group.ranks);
  if (!listed.empty()) return static_cast<int64_t>(listed.size());
  if (!group.ranks.is_none() && info_.world_size) return info_.world_size;
  return group.size;
}

bool Trace::HasAllRanks(const ProcessGroup& group) const {
  if (!group.ranks.is_none() && ints(group.ranks).empty()) return true;
  return info_.world_size && GroupSize(group) == info_.world_size;
}

size_t Trace::memory_bytes() const {
  const auto column = [](const auto& v) { return v.capacity() * sizeof(v[0]); };
  return strings_.memory_bytes() + int_lists_.memory_bytes() + value_lists_.memory_bytes() +
         tensors_.memory_bytes() + lanes_.memory_bytes() + column(groups_) +
         groups_by_name_.size() * sizeof(*groups_by_name_.begin()) + column(source_id_) +
         column(kind_) + column(place_) + column(name_) + column(parent_) + column(lane_) +
         start_.memory_bytes() + duration_.memory_bytes() + exclusive_.memory_bytes() +
         column(inputs_) + column(outputs_) + rf_id_.memory_bytes() + fw_parent_.memory_bytes() +
         seq_id_.memory_bytes() + scope_.memory_bytes() + tid_.memory_bytes() +
         fw_tid_.memory_bytes() + column(op_schema_) + column(kernel_backend_) +
         column(kernel_file_) + column(tensor_range_) + column(index_statistics_) +
         column(index_values_) + correlation_.memory_bytes() + external_id_.memory_bytes() +
         column(comms_) + children_.memory_bytes() + deps_.memory_bytes() +
         dep_kinds_.memory_bytes() + extras_.memory_bytes() + column(dangling_) + column(cycle_) +
         column(by_source_id_);
}

}  // namespace etude
