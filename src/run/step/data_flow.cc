#include "src/run/step/data_flow.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "src/base/container/csr.h"
#include "src/run/step/tensor_shape.h"
#include "src/trace/words/phase.h"

namespace etude {
namespace {

// Returns the key of a tensor's memory: its storage's address; for tensors without elements or
// without a storage (sparse ones) their own address, in a separate range.
uint64_t MemoryKey(const TensorUse& use) {
  constexpr uint64_t kByTensor = uint64_t{1} << 63;
  return use.numel == 0 || use.storage == 0 ? use.tensor | kByTensor : use.storage;
}

}  // namespace

// Visits the step's nodes in the order of entry and exit.
class DataFlow::Walk {
 public:
  Walk(const RecordedStep& step, DataFlow& flow) : step_(step), trace_(step.trace()), flow_(flow) {}

  void Run() {
    const auto count = static_cast<uint32_t>(step_.nodes().size());
    flow_.rows_.resize(count);
    outputs_.resize(count);
    const auto left = Csr<uint32_t>::Build(
        count, std::views::iota(0U, count), [&](uint32_t i) { return step_.last_inside(i); },
        [](uint32_t i) { return i; });
    for (uint32_t i = 0; i < count; ++i) {
      Enter(i);
      // The innermost first; nodes of other threads may lie between a node and its end.
      for (const uint32_t position : left[i] | std::views::reverse) Leave(position);
    }
    Join();
  }

 private:
  struct Current {
    StorageVersion version;
    uint64_t birth = 0;                        // clock_ at its creation
    std::vector<StringId> types;               // types of the tensors in it
    ValueKind number_kind = ValueKind::kNone;  // of the Python number that it was made from, if any
    uint64_t number = 0;
    int64_t bytes = INT64_MAX;  // lower bound; INT64_MAX: unknown
  };

  void Enter(uint32_t position) {
    const NodeId node = step_.nodes()[position];
    entered_at_.push_back(++clock_);
    Rows& rows = flow_.rows_[position];
    rows.inputs = static_cast<uint32_t>(flow_.uses_.size());
    if (trace_.scope(node) == kBackwardScope) OpenBackward(position);
    const bool is_operator = step_.is_operator(position);
    auto read = [&](TensorId tensor) {
      const StorageVersion version = Read(tensor, position, is_operator);
      flow_.uses_.push_back({tensor, version});
      if (version) HoldUntilLeft(version, position);
    };
    ForEachTensor(trace_, trace_.inputs(node), read);
    // A storage is not recorded, except for the result in it.
    for (const Value& value : trace_.inputs(node)) {
      if (!is_operator || !IsStorage(trace_, value)) continue;
      for (const Value& result : trace_.outputs(node)) {
        if (result.kind != ValueKind::kTensor) continue;
        read(result.as_tensor());
        break;
      }
    }
    rows.outputs = rows.end = static_cast<uint32_t>(flow_.uses_.size());
  }

  StorageVersion Read(TensorId tensor, uint32_t position, bool is_operator) {
    const TensorUse& use = trace_.tensor(tensor);
    if (IsUndefined(trace_, use)) return StorageVersion::None();
    const uint64_t key = MemoryKey(use);
    const auto found = current_.find(key);
    const NodeId around = step_.enclosing_operator(position);
    if (found != current_.end() && MayRead(found->second, use, around)) {
      Touch(found->second.version, position);
      return found->second.version;
    }
    if (!is_operator) return StorageVersion::None();
    const StorageVersion version = Make(key, use.type, position, around);
    current_[key].number_kind = use.number_kind;
    current_[key].number = use.number;
    return version;
  }

  // Returns true if the memory last seen at an address can be what a callee of `around` reads
  // there; false if unrecorded code must have made a new tensor at the freed address. Only recorded
  // operators change the element type of memory, and an operator reaches only its arguments and
  // memory made while it ran.
  bool MayRead(const Current& current, const TensorUse& use, NodeId around) const {
    if (!HasType(current, use.type)) return false;
    // Storages grow in operators; elsewhere they get new memory.
    if (const auto bytes = BytesOf(use); bytes && *bytes > current.bytes) return false;
    // A Python number is never written to: another value means other memory.
    if (use.number_kind != ValueKind::kNone &&
        (current.number_kind != use.number_kind || current.number != use.number)) {
      return false;
    }
    if (!around) return true;
    const uint32_t caller = step_.position(around);
    if (current.birth >= entered_at_[caller]) return true;
    const Rows& rows = flow_.rows_[caller];
    return std::any_of(flow_.uses_.begin() + rows.inputs, flow_.uses_.begin() + rows.outputs,
                       [&](const Use& input) { return input.version == current.version; });
  }

  // Returns the bytes of the use's storage, as far as known.
  std::optional<int64_t> BytesOf(const TensorUse& use) const {
    if (use.storage_bytes >= 0) return use.storage_bytes;
    const auto shape = ShapeOf(trace_, use);
    return shape && shape->strides_known ? std::optional(shape->storage_bytes) : std::nullopt;
  }

  void Grow(Current& current, const TensorUse& use) const {
    current.bytes = std::max(current.bytes, BytesOf(use).value_or(INT64_MAX));
  }

  static bool HasType(const Current& current, StringId type) {
    return std::ranges::find(current.types, type) != current.types.end();
  }

  void Touch(StorageVersion version, uint32_t position) {
    uint32_t& held_until = flow_.versions_[version.index()].held_until;
    held_until = std::max(held_until, position);
  }

  void OpenBackward(uint32_t position) {
    const uint32_t last = step_.last_inside(position);
    while (!backward_.empty() && step_.last_inside(backward_.back()) <= last) backward_.pop_back();
    backward_.push_back(position);
  }

  // Extends the lifetime of `version`. A caller holds the arguments until the call returns.
  // Autograd also holds what it saved for a backward function until that returns.
  void HoldUntilLeft(StorageVersion version, uint32_t position) {
    const uint32_t made_at = flow_.versions_[version.index()].made_at;
    if (made_at < position) Touch(version, step_.last_inside(position));
    const auto outermost = std::ranges::upper_bound(backward_, made_at);
    if (outermost != backward_.end()) Touch(version, step_.last_inside(*outermost));
  }

  StorageVersion Make(uint64_t key, StringId type, uint32_t position, NodeId origin) {
    const StorageVersion version = StorageVersion::FromIndex(flow_.versions_.size());
    flow_.versions_.push_back(
        {.origin = origin, .kept_as_gradient = false, .made_at = position, .held_until = position});
    current_[key] = {.version = version, .birth = clock_, .types = {type}};
    return version;
  }

  void Leave(uint32_t position) {
    const NodeId node = step_.nodes()[position];
    ++clock_;
    if (IsGradientAccumulation(trace_.name(node))) KeepGradient(position);
    if (!step_.is_operator(position)) return;
    Rows& rows = flow_.rows_[position];
    auto write = [&](TensorId tensor) {
      outputs_[position].push_back({tensor, Write(tensor, position, rows)});
    };
    ForEachTensor(trace_, trace_.outputs(node), write);
  }

  // Marks the gradient left by an accumulation: the first result of its first operator, which is
  // the given gradient (detach), a copy of it, or the existing one after an addition.
  void KeepGradient(uint32_t position) {
    const auto first = std::ranges::upper_bound(step_.top_operators(), position, {},
                                                [&](NodeId node) { return step_.position(node); });
    if (first != step_.top_operators().end() &&
        step_.position(*first) <= step_.last_inside(position)) {
      const std::vector<Use>& outputs = outputs_[step_.position(*first)];
      if (!outputs.empty()) Keep(outputs.front().version);
      return;
    }
    const Rows& rows = flow_.rows_[position];
    for (uint32_t i = rows.inputs; i < rows.outputs; ++i) Keep(flow_.uses_[i].version);
  }

  void Keep(StorageVersion version) {
    if (!version || !flow_.versions_[version.index()].origin) return;
    flow_.versions_[version.index()].kept_as_gradient = true;
  }

  StorageVersion Write(TensorId tensor, uint32_t position, const Rows& rows) {
    const TensorUse& use = trace_.tensor(tensor);
    if (IsUndefined(trace_, use)) return StorageVersion::None();
    const uint64_t key = MemoryKey(use);
    const auto found = current_.find(key);
    for (uint32_t i = rows.inputs; i < rows.outputs; ++i) {
      const Use& input = flow_.uses_[i];
      if (!input.version || MemoryKey(trace_.tensor(input.tensor)) != key) continue;
      if (found != current_.end() && found->second.version == input.version) {
        if (!HasType(found->second, use.type)) found->second.types.push_back(use.type);
        Grow(found->second, use);
      }
      Touch(input.version, position);
      return input.version;
    }
    // A callee's Python number is freed when it returns: a result at its address lies in other
    // memory.
    const bool was_number = found != current_.end() &&
                            found->second.number_kind != ValueKind::kNone &&
                            use.number_kind == ValueKind::kNone;
    if (found != current_.end() && !was_number && found->second.birth >= entered_at_[position]) {
      if (!HasType(found->second, use.type)) found->second.types.push_back(use.type);
      Grow(found->second, use);
      Touch(found->second.version, position);
      return found->second.version;
    }
    const StorageVersion version = Make(key, use.type, position, step_.nodes()[position]);
    current_[key].bytes = BytesOf(use).value_or(INT64_MAX);
    return version;
  }

  // Places inputs and outputs of each node side by side.
  void Join() {
    std::vector<Use> joined;
    joined.reserve(flow_.uses_.size() * 2);
    for (size_t i = 0; i < flow_.rows_.size(); ++i) {
      Rows& rows = flow_.rows_[i];
      const auto begin = flow_.uses_.begin();
      const auto at = static_cast<uint32_t>(joined.size());
      joined.insert(joined.end(), begin + rows.inputs, begin + rows.outputs);
      rows.inputs = at;
      rows.outputs = static_cast<uint32_t>(joined.size());
      joined.insert(joined.end(), outputs_[i].begin(), outputs_[i].end());
      rows.end = static_cast<uint32_t>(joined.size());
    }
    flow_.uses_ = std::move(joined);
  }

  const RecordedStep& step_;
  const Trace& trace_;
  DataFlow& flow_;
  uint64_t clock_ = 0;
  std::vector<uint64_t> entered_at_;  // by position
  std::unordered_map<uint64_t, Current> current_;
  // Positions of nodes of the backward pass, except those that are left no later than one after
  // them.
  std::vector<uint32_t> backward_;
  std::vector<std::vector<Use>> outputs_;  // by position
};

DataFlow::DataFlow(const RecordedStep& step) : step_(&step) { Walk(step, *this).Run(); }

std::span<const DataFlow::Use> DataFlow::inputs(NodeId node) const {
  const uint32_t position = step_->position(node);
  if (position == RecordedStep::kNowhere) return {};
  const Rows& rows = rows_[position];
  return {uses_.data() + rows.inputs, rows.outputs - rows.inputs};
}

std::span<const DataFlow::Use> DataFlow::outputs(NodeId node) const {
  const uint32_t position = step_->position(node);
  if (position == RecordedStep::kNowhere) return {};
  const Rows& rows = rows_[position];
  return {uses_.data() + rows.outputs, rows.end - rows.outputs};
}

}  // namespace etude
