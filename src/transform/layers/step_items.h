#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/base/units.h"
#include "src/trace/trace.h"

namespace etude {

using Storage = uint64_t;  // TensorUse::storage, not 0

// Returns whether a tensor has memory of its own. Python numbers among arguments are tensors in
// memory that any other one may have had before.
inline bool HasMemory(const TensorUse& use) {
  return use.storage != 0 && use.number_kind == ValueKind::kNone;
}

// Calls `fn` with the memory of each tensor in `values`.
template <typename Fn>
void ForEachStorage(const Trace& trace, std::span<const Value> values, Fn fn) {
  ForEachTensor(trace, values, [&](TensorId id) {
    if (HasMemory(trace.tensor(id))) fn(trace.tensor(id).storage);
  });
}

// Calls `fn` with the memory of each result of `node` that is not that of an argument.
template <typename Fn>
void ForEachMade(const Trace& trace, NodeId node, Fn fn) {
  std::vector<Storage> read;
  ForEachStorage(trace, trace.inputs(node), [&](Storage storage) { read.push_back(storage); });
  ForEachStorage(trace, trace.outputs(node), [&](Storage storage) {
    if (std::ranges::find(read, storage) == read.end()) fn(storage);
  });
}

// Returns whether a node is an operator or a communication.
bool IsCall(const Trace& trace, NodeId node);
// Returns whether an argument of an operator is a list of tensors.
bool HasTensorList(const Trace& trace, NodeId node);
// Returns the lists of tensors among an operator's arguments.
std::vector<std::vector<TensorId>> ListsOf(const Trace& trace, NodeId node);
// Returns whether autograd's engine called the node.
bool IsInBackward(const Trace& trace, NodeId node);

// An outermost operator of a host thread, or a call by autograd without operators. Operators that
// call others for each tensor of a list are none, nor are those on tensors without memory, such as
// DTensor; what they call is.
struct StepItem {
  NodeId node;
  // Equal for items with the same name, shapes of tensors and names of all that they call.
  uint32_t token = 0;
};

// Operators of a recorded step, thread by thread, and the memory that it uses. Memory is named by
// its address, which may be used again. Immutable.
class StepItems {
 public:
  explicit StepItems(const Trace& trace);

  // Return the items of each host thread, in order of time.
  const std::map<LaneId, std::vector<StepItem>>& lanes() const { return items_; }
  const std::vector<StepItem>& of(LaneId lane) const { return items_.at(lane); }
  // Returns the outermost operators on lists of tensors, with those that are no items.
  std::span<const NodeId> lists() const { return lists_; }

  // Returns when an operator last made memory with this address, or a copy filled it before any
  // other use; nullopt: it existed before, and may have been used.
  std::optional<Nanos> LastMade(Storage storage) const {
    const auto made = made_.find(storage);
    return made == made_.end() ? std::nullopt : std::optional(made->second);
  }
  bool IsMade(Storage storage) const { return made_.contains(storage); }
  // Returns whether autograd adds this memory to the gradient of a parameter.
  bool IsAccumulated(Storage storage) const { return accumulated_.contains(storage); }

  // Return the begin of the first backward pass, and when the last gradient was added; nullopt
  // without one.
  std::optional<Nanos> backward() const { return backward_; }
  std::optional<Nanos> last_gradient() const { return last_gradient_; }

 private:
  void FindItems(const Trace& trace);
  void FindMade(const Trace& trace);

  std::map<LaneId, std::vector<StepItem>> items_;
  std::vector<NodeId> lists_;
  std::unordered_map<Storage, Nanos> made_;
  std::unordered_set<Storage> accumulated_;
  std::optional<Nanos> backward_;
  std::optional<Nanos> last_gradient_;
};

}  // namespace etude
