#include "src/compose/memory_names.h"

#include <algorithm>
#include <span>

namespace etude {

MemoryNames::Made::Made(const SourceTrace& source, const PartPlan& plan)
    : made_(source.flow.version_count()) {
  for (const NodeId node : plan.nodes) {
    if (!source.is_operator(node)) continue;
    const std::span<const DataFlow::Use> inputs = source.flow.inputs(node);
    for (const DataFlow::Use& use : source.flow.outputs(node)) {
      if (!use.version) continue;
      if (std::ranges::find(inputs, use.version, &DataFlow::Use::version) != inputs.end()) continue;
      made_[use.version.index()] = true;
    }
  }
}

void MemoryNames::Begin(size_t trace, const Made& made) {
  made_ = &made;
  trace_ = trace;
  renewed_.clear();
  unknown_.clear();
  apart_.clear();
}

uint64_t MemoryNames::Named(Table& table, uint64_t a, uint64_t b) {
  const auto [found, is_new] = table.try_emplace({a, b}, next_);
  if (is_new) ++next_;
  return found->second;
}

MemoryNames::Names MemoryNames::Of(const TensorUse& use, StorageVersion version) {
  uint64_t memory = 0;
  if (!version) {
    memory = Named(unknown_, use.numel == 0 ? use.tensor : 0, use.storage);
  } else {
    const uint64_t number = version.value();
    if (made_->contains(version) && renewed_.try_emplace({trace_, number}, 0).second) {
      storages_.erase({trace_, number});
    }
    memory = Named(storages_, trace_, number);
  }
  return {.tensor = Named(tensors_, memory, use.tensor), .storage = use.storage == 0 ? 0 : memory};
}

MemoryNames::Names MemoryNames::Apart(const TensorUse& use, StorageVersion version) {
  const uint64_t memory =
      version ? Named(apart_, 1, version.value()) : Named(apart_, 0, use.storage);
  return {.tensor = Named(tensors_, memory, use.tensor), .storage = memory};
}

}  // namespace etude
