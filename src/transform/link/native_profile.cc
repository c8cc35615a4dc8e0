#include "src/transform/link/native_profile.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/text/quantity.h"
#include "src/formats/native/capture_reader.h"
#include "src/formats/profile/time_nesting.h"
#include "src/run/waits/program_order.h"
#include "src/trace/trace_builder.h"
#include "src/trace/trace_copy.h"
#include "src/trace/words/machine_clock.h"

namespace etude {
namespace {

std::optional<int64_t> NumberOf(const Trace& trace, std::string_view key) {
  for (const Extra& extra : trace.info().extras) {
    if (trace.text(extra.key) == key) return ParseWhole(trace.text(extra.text));
  }
  return std::nullopt;
}

// Returns Kineto's names for a thread without a known system id: CUPTI's lower half of
// pthread_self(), with or without a sign.
std::vector<std::string> CuptiNames(uint32_t posix_id) {
  const auto with_sign = int64_t{static_cast<int32_t>(posix_id)};
  return {std::to_string(posix_id), std::to_string(with_sign),
          std::to_string(std::max(with_sign, -with_sign))};
}

class ProfileMaker {
 public:
  ProfileMaker(const Trace& native, const Trace& devices, const Limits& limits)
      : native_(native),
        devices_(devices),
        builder_(limits, native),
        copy_native_(native, builder_),
        copy_devices_(devices, builder_) {}

  Result<Trace> Run() {
    ETUDE_RETURN_IF_ERROR(CompareClocks());
    SetInfo();
    NameThreads();
    builder_.Reserve(native_.node_count() + devices_.node_count());
    ForEachNode(native_, [&](NodeId node) {
      if (!IsRoot(native_.kind(node))) AddCall(node);
    });
    ForEachNode(devices_, [&](NodeId event) { AddEvent(event); });
    for (const Nesting& nesting : NestByTime(std::move(timed_))) {
      if (nesting.node.index() < calls_) continue;
      builder_.SetParent(nesting.node, builder_.source_id(nesting.parent));
    }
    return builder_.Finish();
  }

 private:
  Status CompareClocks() {
    const auto realtime = NumberOf(native_, "realtime_ns");
    const auto monotonic = NumberOf(native_, "monotonic_ns");
    const int64_t base = NumberOf(devices_, kBaseTimeKey).value_or(0);
    if (!realtime || !monotonic || __builtin_sub_overflow(*monotonic, *realtime, &shift_) ||
        __builtin_add_overflow(shift_, base, &shift_)) {
      return BadInput(
          "found incomplete clocks in the header of the native capture, expected realtime_ns and "
          "monotonic_ns");
    }
    return {};
  }

  void SetInfo() {
    copy_devices_.CopyInfo();
    TraceInfo& info = builder_.info();
    info.SetFormat(TraceFormat::kKineto);
    info.pid = native_.info().pid ? native_.info().pid : info.pid;
    info.rank = native_.info().rank ? native_.info().rank : info.rank;
    info.world_size = native_.info().world_size ? native_.info().world_size : info.world_size;
    const StringId base = builder_.Intern(kBaseTimeKey);
    std::erase_if(info.extras, [&](const Extra& extra) { return extra.key == base; });
    for (TraceCopy* copy : {&copy_native_, &copy_devices_}) {
      copy->AddGroups();
      copy->AddStats();
    }
  }

  // Maps possible names in the profile to the capture's threads. A name shared by two threads is
  // ignored; unique system ids take precedence.
  void NameThreads() {
    std::unordered_map<std::string, LaneId> by_cupti;
    std::vector<std::string> twice;
    ForEachNode(native_, [&](NodeId node) {
      if (native_.kind(node) != NodeKind::kThread || !native_.lane_id(node)) return;
      const LaneId lane = copy_native_.LaneOf(native_.lane_id(node));
      const StringId name = native_.lane(native_.lane_id(node)).thread;
      if (name) threads_.emplace(native_.text(name), lane);
      for (const Extra& extra : native_.extras(node)) {
        if (native_.text(extra.key) != kPosixThreadKey) continue;
        const auto posix_id = ParseWhole(native_.text(extra.text));
        if (!posix_id) continue;
        for (std::string& text : CuptiNames(static_cast<uint32_t>(*posix_id))) {
          const auto [at, added] = by_cupti.emplace(text, lane);
          if (!added && at->second != lane) twice.push_back(std::move(text));
        }
      }
    });
    for (const std::string& text : twice) by_cupti.erase(text);
    threads_.merge(by_cupti);
  }

  void AddCall(NodeId node) {
    NodeRow row = copy_native_.Row(node);
    const NodeId parent = native_.parent(node);
    if (parent && !IsRoot(native_.kind(parent))) row.parent = native_.source_id(parent);
    const NodeId added = builder_.AddNode(row);
    copy_native_.AddFacts(node, added);
    last_id_ = std::max(last_id_, row.source_id);
    calls_ = builder_.node_count();
    AddTimed(added, row);
  }

  void AddEvent(NodeId event) {
    NodeRow row = copy_devices_.Row(event);
    row.source_id = ++last_id_;
    row.start = OnCaptureClock(row.start, row.duration.value_or(Nanos{}));
    if (row.lane && row.place == Place::kHost) row.lane = ThreadOf(event, row.lane);
    const NodeId added = builder_.AddNode(row);
    copy_devices_.AddFacts(event, added);
    if (row.kind == NodeKind::kRuntime) AddTimed(added, row);
  }

  // Returns nullopt if begin or end are out of range.
  std::optional<Nanos> OnCaptureClock(std::optional<Nanos> start, Nanos duration) const {
    int64_t begin = 0;
    int64_t end = 0;
    if (!start || __builtin_add_overflow(start->count, shift_, &begin) ||
        __builtin_add_overflow(begin, duration.count, &end)) {
      return std::nullopt;
    }
    return Nanos{begin};
  }

  LaneId ThreadOf(NodeId event, LaneId lane) const {
    const StringId name = devices_.lane(devices_.lane_id(event)).thread;
    const auto found = name ? threads_.find(std::string(devices_.text(name))) : threads_.end();
    return found == threads_.end() ? lane : found->second;
  }

  void AddTimed(NodeId node, const NodeRow& row) {
    if (!row.start || !row.lane) return;
    const Nanos end = *row.start + std::max(row.duration.value_or(Nanos{}), Nanos{});
    if (row.kind != NodeKind::kRuntime) {
      timed_.push_back({.node = node,
                        .lane = row.lane,
                        .start = *row.start,
                        .end = end,
                        .has_end = row.duration.has_value()});
      return;
    }
    // The runtime's calls belong to the node running at their midpoint, because the two clocks
    // always differ slightly.
    const Nanos middle{row.start->count + (end - *row.start).count / 2};
    timed_.push_back(
        {.node = node, .lane = row.lane, .start = middle, .end = middle, .has_end = false});
  }

  const Trace& native_;
  const Trace& devices_;
  TraceBuilder builder_;
  TraceCopy copy_native_;
  TraceCopy copy_devices_;
  std::unordered_map<std::string, LaneId> threads_;
  std::vector<TimedNode> timed_;
  size_t calls_ = 0;  // nodes of the capture in the new trace: the first ones
  uint64_t last_id_ = 0;
  int64_t shift_ = 0;  // from the profile's times to the capture's
};

}  // namespace

bool IsOfDevicesOnly(const Trace& profile) {
  if (!profile.traits().is_profile) return false;
  bool only = true;
  ForEachNode(profile, [&](NodeId event) {
    const NodeKind kind = profile.kind(event);
    const bool is_operator = profile.place(event) == Place::kHost &&
                             (kind == NodeKind::kOperator || IsCommunication(kind));
    only &= !is_operator && !profile.rf_id(event);
  });
  return only;
}

Result<Trace> MakeNativeProfile(const Trace& native, const Trace& devices, const Limits& limits) {
  return ProfileMaker(native, devices, limits).Run();
}

}  // namespace etude
