#include "src/formats/capture_calls.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "src/formats/capture_format.h"
#include "src/formats/comm_facts.h"
#include "src/trace/operator_name.h"

namespace etude {

void CaptureCalls::End(OpenCall& call, ValueListId outputs, std::optional<int64_t> end) {
  call.row.outputs = outputs;
  call.row.start = Nanos{call.begin};
  int64_t duration = 0;
  if (end && !__builtin_sub_overflow(*end, call.begin, &duration) && duration >= 0) {
    call.row.duration = Nanos{duration};
  } else if (end) {
    builder_.stats().Count(Stat::kNegativeDuration);
  }
  AddNode(call);
}

void CaptureCalls::Detach(OpenCall call) {
  const auto end = ends_.find(call.handle);
  if (end == ends_.end()) {
    const uint64_t handle = call.handle;
    detached_.insert_or_assign(handle, std::move(call));
    return;
  }
  End(call, end->second.outputs, end->second.time);
  ends_.erase(end);
}

void CaptureCalls::EndElsewhere(uint64_t handle, ValueListId outputs, int64_t end) {
  if (const auto found = detached_.find(handle); found != detached_.end()) {
    End(found->second, outputs, end);
    detached_.erase(found);
  } else {
    ends_.insert_or_assign(handle, LateEnd{.outputs = outputs, .time = end});
  }
}

// By handle, so that the order does not depend on a hash table. What is left in `ends_` began
// before the recording.
void CaptureCalls::EndDetached() {
  std::map<uint64_t, OpenCall> ordered(detached_.begin(), detached_.end());
  detached_.clear();
  for (auto& [handle, call] : ordered) End(call, ValueListId::None(), std::nullopt);
}

void CaptureCalls::AddNode(OpenCall& call) {
  const NodeId node = builder_.AddNode(call.row);
  ++count_;
  const auto changed = [&](uint8_t mode, std::string_view key) {
    if (((call.modes ^ call.parent_modes) & mode) == 0) return;
    const std::string_view text = (call.modes & mode) != 0 ? "true" : "false";
    builder_.AddExtra(node, {.key = builder_.Intern(key), .text = builder_.Intern(text)});
  };
  changed(capture::kGradMode, "grad_mode");
  changed(capture::kInferenceMode, "inference_mode");
  changed(capture::kAutocast, "autocast");
  if (call.names_group) {
    for (const uint64_t storage : StoragesOf(call.row.inputs)) {
      issued_[storage].push_back(
          {.node = call.row.source_id, .group = call.group, .group_size = call.group_size});
    }
  } else if (!call.group && !CommOfLabel(builder_.text(call.row.name)).empty()) {
    loose_labels_.push_back({.node = node, .row = call.row});
    return;
  }
  CommFacts facts;
  if (call.group) facts.group = builder_.text(call.group);
  facts.group_size = call.group_size;
  comms_.Add(node, call.row, std::move(facts));
}

// The storages of all tensors in a list and the lists in it.
std::vector<uint64_t> CaptureCalls::StoragesOf(ValueListId list) const {
  std::vector<uint64_t> storages;
  std::vector<ValueListId> open = {list};
  while (!open.empty()) {
    const ValueListId last = open.back();
    open.pop_back();
    for (const Value& value : builder_.values(last)) {
      if (value.kind == ValueKind::kList) open.push_back(value.as_list());
      if (value.kind != ValueKind::kTensor) continue;
      const uint64_t storage = builder_.tensor(value.as_tensor()).storage;
      if (storage != 0) storages.push_back(storage);
    }
  }
  return storages;
}

// A label belongs to the last operator entered before it that had one of its storages.
void CaptureCalls::SettleLooseLabels() {
  for (auto& [storage, operators] : issued_) std::ranges::sort(operators, {}, &Issued::node);
  for (const LooseLabel& label : loose_labels_) {
    const Issued* last = nullptr;
    for (const uint64_t storage : StoragesOf(label.row.inputs)) {
      const auto found = issued_.find(storage);
      if (found == issued_.end()) continue;
      const auto after =
          std::ranges::upper_bound(found->second, label.row.source_id, {}, &Issued::node);
      if (after == found->second.begin()) continue;
      const Issued& candidate = *std::prev(after);
      if (last == nullptr || candidate.node > last->node) last = &candidate;
    }
    CommFacts facts;
    if (last != nullptr) {
      facts.group = builder_.text(last->group);
      facts.group_size = last->group_size;
      builder_.AddDep(label.node, last->node, DepKind::kControl);
    }
    comms_.Add(label.node, label.row, std::move(facts));
  }
}

void CaptureCalls::Finish() {
  SettleLooseLabels();
  comms_.Finish();
}

}  // namespace etude
