#include "src/trace/trace.h"

#include <algorithm>

namespace etude {

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
    const auto it = std::ranges::lower_bound(columns_.source_id, source_id);
    if (it == columns_.source_id.end() || *it != source_id) return NodeId::None();
    return NodeId::FromIndex(static_cast<size_t>(it - columns_.source_id.begin()));
  }
  const auto it = std::ranges::lower_bound(
      by_source_id_, source_id, {}, [&](NodeId node) { return columns_.source_id[node.index()]; });
  if (it == by_source_id_.end() || columns_.source_id[it->index()] != source_id)
    return NodeId::None();
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
  const auto held = [](const auto& v) { return v.capacity() * sizeof(v[0]); };
  size_t bytes = strings_.memory_bytes() + int_lists_.memory_bytes() + value_lists_.memory_bytes() +
                 tensors_.memory_bytes() + lanes_.memory_bytes() + held(groups_) +
                 groups_by_name_.size() * sizeof(*groups_by_name_.begin()) + held(comms_) +
                 children_.memory_bytes() + deps_.memory_bytes() + dep_kinds_.memory_bytes() +
                 extras_.memory_bytes() + held(dangling_) + held(cycle_) + held(by_source_id_);
  ForEachColumn(columns_, [&](const auto& column) {
    if constexpr (requires { column.memory_bytes(); }) {
      bytes += column.memory_bytes();
    } else {
      bytes += held(column);
    }
  });
  return bytes;
}

}  // namespace etude
