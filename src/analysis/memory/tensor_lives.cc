#include "src/analysis/memory/tensor_lives.h"

#include <algorithm>
#include <cstddef>

#include "src/run/step/tensor_shape.h"
#include "src/run/step/updated_tensors.h"
#include "src/trace/words/comm_backend.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/record_scope.h"

namespace etude {
namespace {

// Returns the bytes of its storage required by a tensor's sizes; 0 if unknown.
Bytes BytesOfSizes(const Trace& trace, const TensorUse& use) {
  if (const auto shape = ShapeOf(trace, use)) return Bytes{shape->storage_bytes};
  int64_t bytes = 0;
  if (use.numel <= 0 || use.offset < 0 || use.element_bytes <= 0 ||
      __builtin_add_overflow(use.numel, use.offset, &bytes) ||
      __builtin_mul_overflow(bytes, use.element_bytes, &bytes)) {
    return Bytes{};
  }
  return Bytes{bytes};
}

// Returns the bytes of its storage required by a tensor. A sparse one has none: its values lie in
// other tensors.
Bytes StorageBytes(const Trace& trace, const TensorUse& use) {
  if (use.storage == 0) return Bytes{};
  const Bytes needed = BytesOfSizes(trace, use);
  return use.storage_bytes < 0 ? needed : std::min(needed, Bytes{use.storage_bytes});
}

// Returns the bytes of a tensor's elements; 0 if unknown.
Bytes ElementsBytes(const TensorUse& use) {
  int64_t bytes = 0;
  const bool is_known = use.numel > 0 && use.element_bytes > 0 &&
                        !__builtin_mul_overflow(use.numel, use.element_bytes, &bytes);
  return is_known ? Bytes{bytes} : Bytes{};
}

}  // namespace

TensorLives::TensorLives(const RecordedStep& step)
    : step_(step), trace_(step.trace()), flow_(step) {
  FindLives();
}

void TensorLives::FindLives() {
  lives_.resize(flow_.version_count());
  const auto last = static_cast<uint32_t>(step_.nodes().size()) - 1;
  // Earlier memory counts from the first node that runs.
  const auto runs = [&](NodeId node) {
    return trace_.kind(node) != NodeKind::kProcess && trace_.kind(node) != NodeKind::kThread;
  };
  const auto begin = std::ranges::find_if(step_.nodes(), runs) - step_.nodes().begin();
  const auto first = std::min(static_cast<uint32_t>(begin), last);
  for (size_t i = 0; i < lives_.size(); ++i) {
    const DataFlow::Version& version = flow_.version(StorageVersion::FromIndex(i));
    lives_[i].origin = version.origin;
    lives_[i].from = version.origin ? version.made_at : first;
    lives_[i].until = version.kept_as_gradient ? last : version.held_until;
    lives_[i].is_kept = version.kept_as_gradient;
  }
  // Earlier memory that was changed persists: parameters, optimizer state.
  UpdatedTensors updated(trace_);
  for (const NodeId node : step_.nodes()) {
    const std::vector<bool> is_updated = updated.Of(node);
    const auto inputs = flow_.inputs(node);
    for (size_t i = 0; i < std::min(inputs.size(), is_updated.size()); ++i) {
      const StorageVersion version = inputs[i].version;
      if (is_updated[i] && version && !lives_[version.index()].origin) {
        lives_[version.index()].until = last;
        lives_[version.index()].is_kept = true;
      }
    }
    for (const auto uses : {flow_.inputs(node), flow_.outputs(node)}) {
      for (const DataFlow::Use& use : uses) {
        if (!use.version) continue;
        TensorLife& life = lives_[use.version.index()];
        const TensorUse& tensor = trace_.tensor(use.tensor);
        life.bytes = std::max(life.bytes, StorageBytes(trace_, tensor));
        life.device = trace_.text(tensor.device);
      }
    }
  }
  HoldInFlight();
}

// A Gloo collective holds its arguments until its label ends, even after the call has returned.
void TensorLives::HoldInFlight() {
  const std::span<const NodeId> nodes = step_.nodes();
  const auto step_end = step_.mark() ? EndOf(trace_, step_.mark()) : std::nullopt;
  std::vector<Nanos> begins(nodes.size());  // by position: min begin of it and all later ones
  Nanos first{INT64_MAX};
  for (size_t i = nodes.size(); i-- > 0;) {
    first = std::min(first, trace_.start(nodes[i]).value_or(first));
    begins[i] = first;
  }
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (!IsHostThreadLabel(trace_.name(nodes[i]))) continue;
    const NodeId call = step_.enclosing_operator(i);
    const auto end = EndOf(trace_, nodes[i]);
    if (!call || !end) continue;
    if (!IsCommOperator(FullOperatorName(trace_.text(trace_.op_schema(call))))) continue;
    auto behind = static_cast<size_t>(std::ranges::lower_bound(begins, *end) - begins.begin());
    // Memory released at the end of the step does not persist.
    if (behind == nodes.size() && step_end && *end <= *step_end) --behind;
    if (behind == 0) continue;
    const auto last = static_cast<uint32_t>(behind - 1);
    for (const DataFlow::Use& use : flow_.inputs(call)) {
      if (!use.version) continue;
      TensorLife& life = lives_[use.version.index()];
      life.until = std::max(life.until, last);
    }
  }
}

std::vector<LifeUse> TensorLives::Uses() const {
  std::vector<LifeUse> uses;
  std::vector<uint32_t> held(lives_.size());
  // A call holds its arguments, and autograd what it saved for a backward function, until it ends.
  const auto held_until = [&](uint32_t position, uint32_t made_at) {
    if (made_at >= position) return position;
    uint32_t last = step_.last_inside(position);
    for (NodeId above = step_.nodes()[position]; above; above = trace_.parent(above)) {
      const uint32_t at = step_.position(above);
      if (at == RecordedStep::kNowhere || at <= made_at) break;
      if (trace_.scope(above) == kBackwardScope) last = std::max(last, step_.last_inside(at));
    }
    return last;
  };
  const auto add = [&](const DataFlow::Use& use, uint32_t position, uint32_t until) {
    held[use.version.index()] = std::max(held[use.version.index()], until);
    uses.push_back({.life = static_cast<uint32_t>(use.version.index()),
                    .position = position,
                    .held_until = until,
                    .bytes = ElementsBytes(trace_.tensor(use.tensor))});
  };
  for (uint32_t i = 0; i < step_.nodes().size(); ++i) {
    const NodeId node = step_.nodes()[i];
    for (const DataFlow::Use& use : flow_.inputs(node)) {
      if (use.version) add(use, i, held_until(i, flow_.version(use.version).made_at));
    }
    for (const DataFlow::Use& use : flow_.outputs(node)) {
      if (use.version) add(use, i, i);
    }
  }
  for (uint32_t i = 0; i < lives_.size(); ++i) {
    const bool is_longer = !lives_[i].is_kept && lives_[i].until > held[i];
    if (is_longer)
      uses.push_back(
          {.life = i, .position = lives_[i].until, .held_until = lives_[i].until, .bytes = {}});
  }
  return uses;
}

}  // namespace etude
