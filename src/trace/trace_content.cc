// Trace::SameContent and Trace::ContentHash.

#include <algorithm>

#include "src/base/container/hash.h"
#include "src/trace/trace.h"

namespace etude {
namespace {

bool SameInfo(const TraceInfo& a, const TraceInfo& b) {
  return a.format == b.format && a.schema == b.schema && a.world_size == b.world_size &&
         a.traits == b.traits && a.extras == b.extras;
}

uint64_t MixTime(uint64_t hash, std::optional<Nanos> time) {
  return HashMix(hash, time ? static_cast<uint64_t>(time->count) + 1 : 0);
}

}  // namespace

bool Trace::SameContent(const Trace& other) const {
  // Cheap columns first. by_source_id_, cycle_ and children_ follow from the rest.
  return columns_ == other.columns_ && comms_ == other.comms_ && groups_ == other.groups_ &&
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
    hash = HashMix(hash, columns_.source_id[i]);
    hash = HashMix(hash, static_cast<uint64_t>(columns_.kind[i]));
    hash = HashMix(hash, columns_.name[i].value());
    hash = HashMix(hash, columns_.parent[i].value());
    hash = MixTime(hash, columns_.start.Get(i));
    hash = MixTime(hash, columns_.duration.Get(i));
    for (const NodeId dep : deps_[i]) hash = HashMix(hash, dep.value());
    for (const Value& value : inputs(node)) hash = HashMix(hash, value.payload);
  }
  for (size_t i = 0; i < strings_.size(); ++i) {
    hash = HashBytes(strings_.Get(StringId::FromIndex(i)), hash);
  }
  return hash;
}

}  // namespace etude
