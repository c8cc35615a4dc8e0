// Trace::SameContent and Trace::ContentHash.

#include <algorithm>

#include "src/base/hash.h"
#include "src/trace/trace.h"

namespace etude {
namespace {

bool SameInfo(const TraceInfo& a, const TraceInfo& b) {
  return a.format == b.format && a.schema == b.schema && a.world_size == b.world_size &&
         a.exclusive_durations == b.exclusive_durations && a.extras == b.extras;
}

uint64_t MixTime(uint64_t hash, std::optional<Nanos> time) {
  return HashMix(hash, time ? static_cast<uint64_t>(time->count) + 1 : 0);
}

}  // namespace

bool Trace::SameContent(const Trace& other) const {
  // Cheap columns first. by_source_id_, cycle_ and children_ follow from the rest.
  return source_id_ == other.source_id_ && kind_ == other.kind_ && place_ == other.place_ &&
         name_ == other.name_ && parent_ == other.parent_ && lane_ == other.lane_ &&
         start_ == other.start_ && duration_ == other.duration_ && exclusive_ == other.exclusive_ &&
         inputs_ == other.inputs_ && outputs_ == other.outputs_ && rf_id_ == other.rf_id_ &&
         fw_parent_ == other.fw_parent_ && seq_id_ == other.seq_id_ && scope_ == other.scope_ &&
         tid_ == other.tid_ && fw_tid_ == other.fw_tid_ && op_schema_ == other.op_schema_ &&
         kernel_backend_ == other.kernel_backend_ && kernel_file_ == other.kernel_file_ &&
         tensor_range_ == other.tensor_range_ && index_statistics_ == other.index_statistics_ &&
         index_values_ == other.index_values_ && correlation_ == other.correlation_ &&
         external_id_ == other.external_id_ && comms_ == other.comms_ && groups_ == other.groups_ &&
         deps_ == other.deps_ && dep_kinds_ == other.dep_kinds_ && extras_ == other.extras_ &&
         dangling_ == other.dangling_ && SameInfo(info_, other.info_) &&
         strings_.SameStrings(other.strings_) && int_lists_.SameLists(other.int_lists_) &&
         value_lists_.SameLists(other.value_lists_) && tensors_.SameRows(other.tensors_) &&
         lanes_.SameRows(other.lanes_);
}

uint64_t Trace::ContentHash() const {
  uint64_t hash = HashMix(0, node_count());
  for (size_t i = 0; i < node_count(); ++i) {
    const NodeId node = NodeId::FromIndex(i);
    hash = HashMix(hash, source_id_[i]);
    hash = HashMix(hash, static_cast<uint64_t>(kind_[i]));
    hash = HashMix(hash, name_[i].value());
    hash = HashMix(hash, parent_[i].value());
    hash = MixTime(hash, start_.Get(i));
    hash = MixTime(hash, duration_.Get(i));
    for (const NodeId dep : deps_[i]) hash = HashMix(hash, dep.value());
    for (const Value& value : inputs(node)) hash = HashMix(hash, value.payload);
  }
  for (size_t i = 0; i < strings_.size(); ++i) {
    hash = HashBytes(strings_.Get(StringId::FromIndex(i)), hash);
  }
  return hash;
}

}  // namespace etude
