#include "src/transform/layers/step_items.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "src/base/container/hash.h"
#include "src/run/activity.h"
#include "src/run/step/recorded_step.h"
#include "src/run/step/updated_tensors.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Returns whether an operator on lists calls others for their elements.
bool IsLoop(const Trace& trace, NodeId node) {
  return HasTensorList(trace, node) && std::ranges::any_of(trace.children(node), [&](NodeId child) {
           return IsCall(trace, child);
         });
}

// Returns whether all tensors of an operator lack memory, as those of Python classes around others
// do. What it calls has the memory.
bool IsWithoutMemory(const Trace& trace, NodeId node) {
  bool has_tensors = false;
  bool has_memory = false;
  ForEachTensor(trace, trace.inputs(node), [&](TensorId id) {
    has_tensors = true;
    has_memory = has_memory || trace.tensor(id).storage != 0;
  });
  return has_tensors && !has_memory;
}

uint64_t HashShapes(const Trace& trace, std::span<const Value> values, uint64_t hash) {
  for (const Value& value : values) {
    hash = HashMix(hash, static_cast<uint64_t>(value.kind));
    if (value.kind == ValueKind::kTensor) {
      const TensorUse& use = trace.tensor(value.as_tensor());
      hash = HashMix(HashMix(hash, use.shape.value()), use.type.value());
    }
    if (value.kind == ValueKind::kList) {
      hash = HashShapes(trace, trace.values(value.as_list()), hash);
    }
  }
  return hash;
}

// Returns a hash of the names of a node and of all that it calls.
uint64_t HashNames(const Trace& trace, NodeId node) {
  uint64_t hash = 0;
  std::vector<NodeId> open = {node};
  while (!open.empty()) {
    const NodeId one = open.back();
    open.pop_back();
    hash = HashMix(hash, trace.name_id(one).value());
    for (const NodeId child : trace.children(one)) {
      if (trace.place(child) != Place::kDevice) open.push_back(child);
    }
  }
  return hash;
}

// Returns whether an operator makes another tensor of an argument's memory, without use of it.
bool IsView(const Trace& trace, NodeId node) {
  bool is_view = false;
  ForEachTensor(trace, trace.outputs(node), [&](TensorId result) {
    ForEachTensor(trace, trace.inputs(node), [&](TensorId argument) {
      const TensorUse& from = trace.tensor(argument);
      const TensorUse& to = trace.tensor(result);
      is_view =
          is_view || (HasMemory(from) && to.storage == from.storage && to.tensor != from.tensor);
    });
  });
  return is_view;
}

}  // namespace

bool IsCall(const Trace& trace, NodeId node) {
  return trace.kind(node) == NodeKind::kOperator || IsCommunication(trace.kind(node));
}

bool HasTensorList(const Trace& trace, NodeId node) {
  return std::ranges::any_of(trace.inputs(node), [&](const Value& value) {
    if (value.kind != ValueKind::kList) return false;
    const auto values = trace.values(value.as_list());
    return values.size() > 1 && values.front().kind == ValueKind::kTensor;
  });
}

std::vector<std::vector<TensorId>> ListsOf(const Trace& trace, NodeId node) {
  std::vector<std::vector<TensorId>> lists;
  for (const Value& value : trace.inputs(node)) {
    if (value.kind != ValueKind::kList) continue;
    std::vector<TensorId>& list = lists.emplace_back();
    ForEachTensor(trace, trace.values(value.as_list()), [&](TensorId id) { list.push_back(id); });
  }
  return lists;
}

bool IsInBackward(const Trace& trace, NodeId node) {
  for (; node; node = trace.parent(node)) {
    if (trace.name(node).starts_with(kAutogradCall)) return true;
  }
  return false;
}

StepItems::StepItems(const Trace& trace) {
  FindItems(trace);
  FindMade(trace);
}

void StepItems::FindItems(const Trace& trace) {
  const auto is_work = [&](NodeId node) {
    return IsCall(trace, node) || IsGradientAccumulation(trace.name(node));
  };
  std::vector<bool> has_work(trace.node_count());  // below the node
  ForEachNode(trace, [&](NodeId node) {
    if (!is_work(node)) return;
    for (NodeId above = trace.parent(node); above && !has_work[above.index()];
         above = trace.parent(above)) {
      has_work[above.index()] = true;
    }
  });
  std::map<LaneId, std::vector<NodeId>> lanes;
  ForEachNode(trace, [&](NodeId node) {
    // Autograd also calls nodes that only pass a gradient on.
    const bool passes_on = !has_work[node.index()] && trace.name(node).starts_with(kAutogradCall);
    if (!is_work(node) && !passes_on) return;
    if (trace.place(node) == Place::kDevice || !TimeOf(trace, node)) return;
    lanes[trace.lane_id(node)].push_back(node);
    if (trace.name(node).starts_with(kAutogradCall) || IsInBackward(trace, node)) {
      backward_ = std::min(backward_.value_or(*trace.start(node)), *trace.start(node));
    }
    if (IsGradientAccumulation(trace.name(node))) {
      last_gradient_ = std::max(last_gradient_.value_or(Nanos{}), *trace.start(node));
      ForEachStorage(trace, trace.inputs(node),
                     [&](Storage storage) { accumulated_.insert(storage); });
    }
  });
  std::unordered_map<uint64_t, uint32_t> tokens;
  for (auto& [lane, nodes] : lanes) {
    std::ranges::sort(nodes, {}, [&](NodeId node) {
      return std::tuple(*trace.start(node), Nanos{} - *trace.duration(node), node.index());
    });
    std::vector<StepItem>& items = items_[lane];
    std::optional<Nanos> end;  // of the last item
    for (const NodeId node : nodes) {
      if (end && *trace.start(node) < *end) continue;  // inside of it
      if (HasTensorList(trace, node)) lists_.push_back(node);
      if (IsLoop(trace, node)) continue;
      if (has_work[node.index()] && IsWithoutMemory(trace, node)) continue;
      const uint64_t hash = HashShapes(trace, trace.inputs(node), HashNames(trace, node));
      const auto token = tokens.try_emplace(hash, static_cast<uint32_t>(tokens.size())).first;
      items.push_back({.node = node, .token = token->second});
      end = EndOf(trace, node);
    }
  }
}

void StepItems::FindMade(const Trace& trace) {
  UpdatedTensors updated(trace);
  std::unordered_set<Storage> read;
  std::vector<NodeId> nodes;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.place(node) != Place::kDevice) nodes.push_back(node);
  });
  const auto start_of = [&](NodeId node) { return trace.start(node).value_or(Nanos{}); };
  std::ranges::stable_sort(nodes, {}, start_of);
  for (const NodeId node : nodes) {
    const Nanos start = start_of(node);
    const auto make = [&](Storage storage) {
      Nanos& last = made_.try_emplace(storage, start).first->second;
      last = std::max(last, start);
    };
    ForEachMade(trace, node, make);
    const auto is_call = [&](NodeId child) { return IsCall(trace, child); };
    if (IsView(trace, node) || std::ranges::any_of(trace.children(node), is_call)) continue;
    // Memory whose first use is that a copy fills it, such as that of gathered parameters.
    const bool copies = trace.name(node).find("copy") != std::string_view::npos;
    const std::vector<bool> is_updated = copies ? updated.Of(node) : std::vector<bool>();
    size_t i = 0;
    ForEachTensor(trace, trace.inputs(node), [&](TensorId id) {
      const bool is_filled = i < is_updated.size() && is_updated[i];
      ++i;
      if (!HasMemory(trace.tensor(id))) return;
      const Storage storage = trace.tensor(id).storage;
      if (!is_filled) {
        read.insert(storage);
      } else if (!read.contains(storage)) {
        make(storage);
      }
    });
  }
}

}  // namespace etude
