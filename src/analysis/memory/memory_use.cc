#include "src/analysis/memory/memory_use.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "src/analysis/memory/tensor_lives.h"
#include "src/analysis/view/modules.h"
#include "src/formats/chakra/chakra_attr.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/words/device_name.h"
#include "src/trace/words/memory_event.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/stated_facts.h"

namespace etude {
namespace {

// Collects the live memory at a peak.
class Holders {
 public:
  Holders(const Trace& trace, const Modules& modules) : trace_(trace), modules_(modules) {}

  // `origin`: the operator; kNone: from before.
  void Add(NodeId origin, Bytes bytes) {
    DeviceMemory::Holder row{.op = kOutsideMemory, .module = kNoModule};
    if (origin) row.op = trace_.name(origin);
    if (origin) row.module = modules_.name(origin);
    DeviceMemory::Holder& sum = rows_.try_emplace({row.op, row.module}, row).first->second;
    ++sum.count;
    sum.bytes = sum.bytes + bytes;
  }

  std::vector<DeviceMemory::Holder> Sorted() const {
    std::vector<DeviceMemory::Holder> sorted;
    for (const auto& [key, row] : rows_) sorted.push_back(row);
    std::ranges::stable_sort(sorted, std::ranges::greater{}, &DeviceMemory::Holder::bytes);
    return sorted;
  }

 private:
  const Trace& trace_;
  const Modules& modules_;
  std::map<std::pair<std::string_view, std::string_view>, DeviceMemory::Holder> rows_;
};

class TensorCounter {
 public:
  TensorCounter(const Trace& trace, const RecordedStep& step)
      : trace_(trace), step_(step), modules_(trace, Launches(trace)) {}

  std::vector<DeviceMemory> Run() {
    std::map<std::string_view, std::vector<TensorLife>> by_device;
    const TensorLives all(step_);
    for (const TensorLife& life : all.lives()) {
      if (life.bytes.count > 0) by_device[life.device].push_back(life);
    }
    std::vector<DeviceMemory> devices;
    for (const auto& [device, lives] : by_device) devices.push_back(Count(device, lives));
    return devices;
  }

 private:
  DeviceMemory Count(std::string_view device, const std::vector<TensorLife>& lives) const {
    DeviceMemory memory{.device = std::string(device), .at_start = Bytes{}};
    const auto count = static_cast<uint32_t>(step_.nodes().size());
    std::vector<Bytes> change(size_t{count} + 1);
    for (const TensorLife& life : lives) {
      if (life.origin) ++memory.allocations;
      if (!life.origin) {
        memory.at_start = *memory.at_start + life.bytes;
      }
      change[life.from] = change[life.from] + life.bytes;
      Bytes& after = change[size_t{life.until} + 1];
      after = after + Bytes{-life.bytes.count};
      if (life.until + 1 == count) memory.at_end = memory.at_end + life.bytes;
    }
    Bytes live;
    uint32_t peak_position = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (change[i] == Bytes{}) continue;
      live = live + change[i];
      const NodeId node = step_.nodes()[i];
      memory.timeline.push_back({node, trace_.start(node), live});
      if (live <= memory.peak) continue;
      memory.peak = live;
      memory.at_peak = memory.timeline.back();
      peak_position = i;
    }
    Holders holders(trace_, modules_);
    for (const TensorLife& life : lives) {
      if (life.from <= peak_position && peak_position <= life.until) {
        holders.Add(life.origin, life.bytes);
      }
    }
    memory.holders = holders.Sorted();
    return memory;
  }

  const Trace& trace_;
  const RecordedStep& step_;
  Modules modules_;
};

// An allocator event.
struct AllocatorEvent {
  Nanos time;
  NodeId node;
  std::optional<int64_t> address;
  int64_t bytes = 0;             // negative: freed
  std::optional<int64_t> total;  // in use after it
  std::optional<int64_t> reserved;
};

constexpr std::string_view kCpu = "cpu";

// Returns the memory in use after each event: as recorded, else the min possible amount given all
// allocations and releases.
std::vector<Bytes> InUseAfter(const std::vector<AllocatorEvent>& events, bool has_totals) {
  std::vector<Bytes> in_use;
  in_use.reserve(events.size());
  Bytes sum;
  Bytes least;
  for (const AllocatorEvent& event : events) {
    sum = sum + Bytes{event.bytes};
    least = std::min(least, sum);
    in_use.push_back(has_totals ? Bytes{*event.total} : sum);
  }
  if (has_totals) return in_use;
  const Bytes at_start{-std::max(least.count, -INT64_MAX)};
  for (Bytes& bytes : in_use) bytes = bytes + at_start;
  return in_use;
}

// Returns the holders of the `in_use` bytes left after these events; empty if the events do not
// identify memory.
std::vector<DeviceMemory::Holder> HoldersAt(const Trace& trace, const Modules& modules,
                                            std::span<const AllocatorEvent> events, Bytes in_use) {
  if (!std::ranges::all_of(events, &std::optional<int64_t>::has_value, &AllocatorEvent::address)) {
    return {};
  }
  std::map<int64_t, const AllocatorEvent*> live;
  for (const AllocatorEvent& event : events) {
    if (event.bytes > 0) {
      live[*event.address] = &event;
    } else {
      live.erase(*event.address);
    }
  }
  Holders holders(trace, modules);
  Bytes before = in_use;
  for (const auto& [address, event] : live) {
    const NodeId by = trace.parent(event->node);
    holders.Add(by ? by : event->node, Bytes{event->bytes});
    before = before + Bytes{-event->bytes};
  }
  if (before.count > 0) holders.Add(NodeId::None(), before);
  return holders.Sorted();
}

DeviceMemory CountEvents(const Trace& trace, const Modules& modules, const std::string& device,
                         const std::vector<AllocatorEvent>& events) {
  DeviceMemory memory{.device = device};
  memory.has_totals =
      std::ranges::all_of(events, &std::optional<int64_t>::has_value, &AllocatorEvent::total);
  const std::vector<Bytes> in_use = InUseAfter(events, memory.has_totals);
  if (device != kCpu && memory.has_totals) {
    memory.at_start = in_use.front() + Bytes{-events.front().bytes};
  }
  memory.at_end = in_use.back();
  size_t peak = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const AllocatorEvent& event = events[i];
    if (event.bytes > 0) ++memory.allocations;
    if (event.reserved) {
      memory.reserved = std::max(memory.reserved.value_or(Bytes{}), Bytes{*event.reserved});
    }
    memory.timeline.push_back({event.node, event.time, in_use[i]});
    if (in_use[i] <= memory.peak) continue;
    memory.peak = in_use[i];
    memory.at_peak = memory.timeline.back();
    peak = i;
  }
  // An allocator with allocations has reserved memory: the CPU's does not report it.
  if (memory.reserved == Bytes{} && memory.peak > Bytes{}) memory.reserved.reset();
  memory.holders = HoldersAt(trace, modules, std::span(events).first(peak + 1), memory.peak);
  return memory;
}

}  // namespace

Result<std::vector<DeviceMemory>> TensorMemory(const Trace& trace) {
  ETUDE_ASSIGN_OR_RETURN(const RecordedStep step, RecordedStep::Select(trace, ""));
  std::vector<DeviceMemory> devices = TensorCounter(trace, step).Run();
  if (devices.empty()) return BadInput("no operator of the trace has tensors of known size");
  return devices;
}

std::vector<DeviceMemory> StatedMemory(const Trace& trace) {
  DeviceMemory memory{.device = "device"};
  ForEachNode(trace, [&](NodeId node) {
    const auto stated = chakra::StatedUnsigned(trace, node, chakra::kMemoryInUse);
    if (!stated || *stated > INT64_MAX) return;
    const Bytes live{static_cast<int64_t>(*stated)};
    const bool first = memory.timeline.empty();
    if (first) memory.at_start = live;
    if (first || memory.at_end != live) memory.timeline.push_back({node, trace.start(node), live});
    if (first || live > memory.peak) {
      memory.peak = live;
      memory.at_peak = memory.timeline.back();
    }
    memory.at_end = live;
  });
  if (memory.timeline.empty()) return {};
  return {std::move(memory)};
}

std::vector<DeviceMemory> AllocatorMemory(const Trace& trace) {
  std::map<std::string, std::vector<AllocatorEvent>> by_device;
  ForEachNode(trace, [&](NodeId node) {
    if (!IsMemoryEvent(trace, node)) return;
    const auto type = StatedNumber(trace, node, "Device Type");
    const auto bytes = StatedNumber(trace, node, "Bytes");
    const auto total = StatedNumber(trace, node, "Total Allocated");
    if (!trace.start(node) || !type || !bytes || *bytes == INT64_MIN) return;
    if (total && (*total < 0 || *bytes > *total)) return;  // inconsistent
    const int64_t number = StatedNumber(trace, node, "Device Id").value_or(0);
    by_device[DeviceName(*type, number)].push_back(
        {.time = *trace.start(node),
         .node = node,
         .address = StatedNumber(trace, node, "Addr"),
         .bytes = *bytes,
         .total = total,
         .reserved = StatedNumber(trace, node, "Total Reserved")});
  });
  std::vector<DeviceMemory> devices;
  if (by_device.empty()) return devices;
  const Modules modules(trace, Launches(trace));
  for (auto& [device, events] : by_device) {
    std::ranges::stable_sort(events, {}, &AllocatorEvent::time);
    devices.push_back(CountEvents(trace, modules, device, events));
  }
  return devices;
}

}  // namespace etude
