#include "src/formats/native/capture_calls.h"

#include <algorithm>
#include <map>
#include <utility>

#include "src/formats/native/capture_format.h"
#include "src/formats/profile/comm_facts.h"
#include "src/trace/words/operator_name.h"

namespace etude {

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

// Another thread's own clock does not give the duration.
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

// By handle, so that the order does not depend on a hash table. Remaining entries of `ends_` began
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
  if (!call.names_group && !call.group && !CommOfLabel(builder_.text(call.row.name)).empty()) {
    loose_labels_.push_back(
        {.node = node, .row = call.row, .begin = call.begin, .end = end, .call = nullptr});
  }
  CommFacts facts;
  if (call.group) facts.group = builder_.text(call.group);
  facts.group_size = call.group_size;
  comms_.Add(node, call.row, std::move(facts));
}

// For an all-reduce of memory of the host Gloo runs no operators: callbacks of the program did,
// which run before the label ends, as those of DistributedDataParallel's communication hooks. Then
// the collective was over.
void CaptureCalls::FreeCallbacks() {
  for (LooseLabel& label : loose_labels_) {
    const auto inside = inside_.find(label.row.source_id);
    if (inside == inside_.end() || !HasCallbacks(label)) continue;
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

bool CaptureCalls::HasCallbacks(const LooseLabel& label) const {
  if (label.call == nullptr || !label.row.parent) return false;
  if (builder_.text(builder_.name(label.call->node)) != "c10d::allreduce_") return false;
  if (builder_.text(label.row.name) != "gloo:all_reduce") return false;
  bool on_host = true;
  ForEachTensor(builder_, builder_.values(label.row.inputs), [&](TensorId tensor) {
    on_host &= builder_.text(builder_.tensor(tensor).device) == "cpu";
  });
  return on_host;
}

void CaptureCalls::Finish() {
  comms_.Finish();
  std::ranges::sort(loose_labels_, {}, [](const LooseLabel& label) { return label.row.source_id; });
  for (LooseLabel& label : loose_labels_) label.call = comms_.CallOf(label.row.source_id);
  FreeCallbacks();
}

std::vector<AskedLabel> CaptureCalls::AskedLabels() const {
  std::vector<AskedLabel> asked;
  for (const LooseLabel& label : loose_labels_) {
    if (!label.end || label.call == nullptr) continue;
    asked.push_back({.node = label.node,
                     .lane = label.row.lane,
                     .asker = builder_.lane_id(label.call->node),
                     .begin = label.begin,
                     .end = *label.end});
  }
  return asked;
}

}  // namespace etude
