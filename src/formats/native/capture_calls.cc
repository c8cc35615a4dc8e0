#include "src/formats/native/capture_calls.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "src/formats/kineto/comm_facts.h"
#include "src/formats/native/capture_format.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Gloo reduces a copy of what they are given.
constexpr auto kCopying = std::to_array<std::string_view>({
    "c10d::reduce_scatter_",
    "c10d::_reduce_scatter_base_",
    "c10d::reduce_scatter_tensor_coalesced_",
});

}  // namespace

void CaptureCalls::End(OpenCall& call, ValueListId outputs, std::optional<Moment> end) {
  call.row.outputs = outputs;
  call.row.start = Nanos{call.begin.own};
  int64_t duration = 0;
  if (end && !__builtin_sub_overflow(end->own, call.begin.own, &duration) && duration >= 0) {
    call.row.duration = Nanos{duration};
  } else if (end) {
    builder_.stats().Count(Stat::kNegativeDuration);
  }
  AddNode(call, end);
}

void CaptureCalls::Detach(OpenCall call) {
  const auto end = ends_.find(call.handle);
  if (end == ends_.end()) {
    const uint64_t handle = call.handle;
    detached_.insert_or_assign(handle, std::move(call));
    return;
  }
  EndAt(call, end->second);
  ends_.erase(end);
}

// The own clock of another thread says nothing of how long it lasted.
void CaptureCalls::EndAt(OpenCall& call, const LateEnd& end) {
  int64_t own = 0;
  int64_t lasted = 0;
  if (__builtin_sub_overflow(end.time, call.begin.time, &lasted) ||
      __builtin_add_overflow(call.begin.own, lasted, &own)) {
    own = end.time;
  }
  End(call, end.outputs, Moment{.time = end.time, .own = own});
}

void CaptureCalls::EndElsewhere(uint64_t handle, ValueListId outputs, int64_t time) {
  const LateEnd end{.outputs = outputs, .time = time};
  if (const auto found = detached_.find(handle); found != detached_.end()) {
    EndAt(found->second, end);
    detached_.erase(found);
  } else {
    ends_.insert_or_assign(handle, end);
  }
}

// By handle, so that the order does not depend on a hash table. What is left in `ends_` began
// before the recording.
void CaptureCalls::EndDetached() {
  std::map<uint64_t, OpenCall> ordered(detached_.begin(), detached_.end());
  detached_.clear();
  for (auto& [handle, call] : ordered) End(call, ValueListId::None(), std::nullopt);
}

void CaptureCalls::AddNode(OpenCall& call, std::optional<Moment> end) {
  const NodeId node = builder_.AddNode(call.row);
  ++count_;
  if (call.in_label) inside_[*call.row.parent].push_back(node);
  const auto changed = [&](uint8_t mode, std::string_view key) {
    if (((call.modes ^ call.parent_modes) & mode) == 0) return;
    const std::string_view text = (call.modes & mode) != 0 ? "true" : "false";
    builder_.AddExtra(node, {.key = builder_.Intern(key), .text = builder_.Intern(text)});
  };
  changed(capture::kGradMode, "grad_mode");
  changed(capture::kInferenceMode, "inference_mode");
  changed(capture::kAutocast, "autocast");
  if (call.names_group) {
    AddIssued(call);
  } else if (!CommOfLabel(builder_.text(call.row.name)).empty()) {
    if (!call.group) {
      loose_labels_.push_back({.node = node, .row = call.row, .begin = call.begin, .end = end});
      return;
    }
    if (call.row.parent) labelled_.push_back(*call.row.parent);
  }
  CommFacts facts;
  if (call.group) facts.group = builder_.text(call.group);
  facts.group_size = call.group_size;
  comms_.Add(node, call.row, std::move(facts));
}

std::vector<TensorUse> CaptureCalls::TensorsOf(std::span<const Value> values) const {
  std::vector<TensorUse> tensors;
  ForEachTensor(builder_, values,
                [&](TensorId tensor) { tensors.push_back(builder_.tensor(tensor)); });
  return tensors;
}

int64_t CaptureCalls::SizeOf(std::span<const Value> values) const {
  int64_t size = 0;
  for (const TensorUse& tensor : TensorsOf(values)) {
    if (__builtin_add_overflow(size, tensor.numel, &size)) return 0;
  }
  return size;
}

void CaptureCalls::AddIssued(const OpenCall& call) {
  Issued issued{.node = call.row.source_id,
                .lane = call.row.lane,
                .name = call.row.name,
                .type = CollectiveFromName(builder_.text(call.row.name)),
                .group = call.group,
                .group_size = call.group_size};
  const std::span<const Value> inputs = builder_.values(call.row.inputs);
  for (const TensorUse& tensor : TensorsOf(inputs)) {
    if (tensor.storage != 0) issued.storages.push_back(tensor.storage);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t size = SizeOf(inputs.subspan(i, 1));
    if (size != 0) issued.sizes.push_back(size);
  }
  issued.copies = std::ranges::count(kCopying, builder_.text(call.row.name)) != 0;
  issued_.push_back(std::move(issued));
}

// The last operator entered before the label that had one of its storages and has none yet.
CaptureCalls::Issued* CaptureCalls::FindByStorage(const LooseLabel& label) {
  Issued* last = nullptr;
  for (const TensorUse& tensor : TensorsOf(builder_.values(label.row.inputs))) {
    const auto found = by_storage_.find(tensor.storage);
    if (found == by_storage_.end()) continue;
    Waiting& waiting = found->second;
    for (; waiting.next < waiting.all.size(); ++waiting.next) {
      if (issued_[waiting.all[waiting.next]].node > label.row.source_id) break;
      waiting.entered.push_back(waiting.all[waiting.next]);
    }
    while (!waiting.entered.empty() && issued_[waiting.entered.back()].has_label) {
      waiting.entered.pop_back();
    }
    if (waiting.entered.empty()) continue;
    Issued& issued = issued_[waiting.entered.back()];
    if (last == nullptr || issued.node > last->node) last = &issued;
  }
  return last;
}

// The first of `waiting` that has no label yet, if it was entered before this one.
CaptureCalls::Issued* CaptureCalls::FirstWithoutLabel(Waiting& waiting, const LooseLabel& label) {
  while (waiting.next < waiting.all.size() && issued_[waiting.all[waiting.next]].has_label) {
    ++waiting.next;
  }
  if (waiting.next == waiting.all.size()) return nullptr;
  Issued& issued = issued_[waiting.all[waiting.next]];
  return issued.node > label.row.source_id ? nullptr : &issued;
}

// The first operator that copies, was entered before the label and has none yet, with as many
// elements.
CaptureCalls::Issued* CaptureCalls::FindBySize(const LooseLabel& label) {
  const auto found = by_size_.find(SizeOf(builder_.values(label.row.inputs)));
  return found == by_size_.end() ? nullptr : FirstWithoutLabel(found->second, label);
}

// Of a label without memory (of a barrier, of a scatter on ranks that only receive): the first
// operator of its type that was entered before it and has none yet, of the group that its thread
// works for. If that leaves operators of several groups nobody knows.
CaptureCalls::Issued* CaptureCalls::FindByThread(const LooseLabel& label) {
  if (!TensorsOf(builder_.values(label.row.inputs)).empty()) return nullptr;
  const auto type = CollectiveFromName(CommOfLabel(builder_.text(label.row.name)));
  const auto found = type ? by_group_.find(*type) : by_group_.end();
  if (found == by_group_.end()) return nullptr;
  const auto thread = groups_of_threads_.find(label.row.parent.value_or(0));
  Issued* only = nullptr;
  for (auto& [group, waiting] : found->second) {
    if (thread != groups_of_threads_.end() && !thread->second.contains(group)) continue;
    Issued* issued = FirstWithoutLabel(waiting, label);
    if (issued == nullptr) continue;
    if (only != nullptr) return nullptr;
    only = issued;
  }
  return only;
}

void CaptureCalls::FillWaiting() {
  std::ranges::sort(issued_, {}, &Issued::node);
  std::ranges::sort(labelled_);
  for (size_t i = 0; i < issued_.size(); ++i) {
    Issued& issued = issued_[i];
    issued.has_label = std::ranges::binary_search(labelled_, issued.node);
    if (issued.type) by_group_[*issued.type][issued.group].all.push_back(i);
    if (issued.copies) {
      for (const int64_t size : issued.sizes) by_size_[size].all.push_back(i);
    } else {
      for (const uint64_t storage : issued.storages) by_storage_[storage].all.push_back(i);
    }
  }
}

// For an all-reduce of memory of the host Gloo runs no operators: callbacks of the program did,
// which run before the label ends, as those of DistributedDataParallel's communication hooks. Then
// the collective was over.
void CaptureCalls::FreeCallbacks() {
  for (LooseLabel& label : loose_labels_) {
    const auto inside = inside_.find(label.row.source_id);
    if (!label.has_callbacks || inside == inside_.end()) continue;
    std::optional<Nanos> first;
    for (const NodeId node : inside->second) {
      builder_.SetParent(node, *label.row.parent);
      const auto start = builder_.start(node);
      if (start && (!first || *start < *first)) first = start;
    }
    if (!label.end || !first || first->count < label.begin.own || *first > Nanos{label.end->own}) {
      continue;
    }
    const int64_t callbacks = label.end->own - first->count;
    label.end = Moment{.time = label.end->time - callbacks, .own = first->count};
    builder_.SetTimes(label.node, std::nullopt, *first - Nanos{label.begin.own}, std::nullopt);
  }
}

void CaptureCalls::Settle(LooseLabel& label, Issued* issued) {
  CommFacts facts;
  std::vector<uint64_t> control_deps;
  if (issued != nullptr) {
    issued->has_label = true;
    const auto tensors = TensorsOf(builder_.values(label.row.inputs));
    const auto on_host = [&](const TensorUse& use) { return builder_.text(use.device) == "cpu"; };
    label.has_callbacks = label.row.parent && builder_.text(issued->name) == "c10d::allreduce_" &&
                          builder_.text(label.row.name) == "gloo:all_reduce" &&
                          std::ranges::all_of(tensors, on_host);
    control_deps.push_back(issued->node);
    facts.group = builder_.text(issued->group);
    facts.group_size = issued->group_size;
    builder_.AddDep(label.node, issued->node, DepKind::kControl);
    label.asker = issued->lane;
    if (label.row.parent) groups_of_threads_[*label.row.parent].insert(issued->group);
  }
  comms_.Add(label.node, label.row, std::move(facts), control_deps);
}

// In the order in which they were entered; each operator has one label. Those that name memory
// tell which threads work for which group.
void CaptureCalls::SettleLooseLabels() {
  FillWaiting();
  std::ranges::sort(loose_labels_, {}, [](const LooseLabel& label) { return label.row.source_id; });
  std::vector<LooseLabel*> without_memory;
  for (LooseLabel& label : loose_labels_) {
    Issued* issued = FindByStorage(label);
    if (issued == nullptr) issued = FindBySize(label);
    if (issued == nullptr) {
      without_memory.push_back(&label);
    } else {
      Settle(label, issued);
    }
  }
  for (LooseLabel* label : without_memory) Settle(*label, FindByThread(*label));
}

void CaptureCalls::Finish() {
  SettleLooseLabels();
  FreeCallbacks();
  comms_.Finish();
}

std::vector<AskedLabel> CaptureCalls::AskedLabels() const {
  std::vector<AskedLabel> asked;
  for (const LooseLabel& label : loose_labels_) {
    if (!label.end || !label.asker) continue;
    asked.push_back({.node = label.node,
                     .lane = label.row.lane,
                     .asker = label.asker,
                     .begin = label.begin,
                     .end = *label.end});
  }
  return asked;
}

}  // namespace etude
