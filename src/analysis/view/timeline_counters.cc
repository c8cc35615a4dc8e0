#include "src/analysis/view/timeline_counters.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/run/calls/comm_log.h"
#include "src/run/calls/launch.h"

namespace etude {
namespace {

struct LevelChange {
  Nanos time;
  int64_t amount = 0;
};

int64_t AddUpTo(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

// Returns the running sum of `changes`, with one point for each time of a change.
Counter Sum(std::string name, Counter::Unit unit, std::vector<LevelChange> changes) {
  std::ranges::sort(
      changes, {}, [](const LevelChange& change) { return std::pair(change.time, change.amount); });
  Counter counter{.name = std::move(name), .unit = unit, .points = {}};
  int64_t value = 0;
  for (size_t i = 0; i < changes.size();) {
    const Nanos time = changes[i].time;
    const int64_t before = value;
    for (; i < changes.size() && changes[i].time == time; ++i) {
      value = AddUpTo(value, changes[i].amount);
    }
    if (value != before) counter.points.emplace_back(time, value);
  }
  return counter;
}

std::vector<Counter> QueueCounters(const Trace& trace) {
  const std::vector<NodeId> launchers = FindLaunchers(trace);
  using Stream = std::tuple<std::string_view, int32_t, int32_t>;  // process, device, stream
  std::map<Stream, std::vector<LevelChange>> queues;
  ForEachNode(trace, [&](NodeId node) {
    const NodeId launcher = launchers[node.index()];
    if (!launcher || !trace.lane_id(node)) return;
    const Lane& lane = trace.lane(trace.lane_id(node));
    if (lane.stream < 0) return;
    const auto launched = trace.start(launcher);
    const auto begun = trace.start(node);
    if (!launched || !begun || *begun <= *launched) return;
    auto& changes = queues[{trace.text(lane.process), lane.device, lane.stream}];
    changes.push_back({*launched, 1});
    changes.push_back({*begun, -1});
  });
  std::vector<Counter> counters;
  for (auto& [of, changes] : queues) {
    const auto& [process, device, stream] = of;
    std::string name = fmt::format("queue of stream {}", stream);
    if (device >= 0) name += fmt::format(" of device {}", device);
    if (!process.empty()) name += fmt::format(" of {}", process);
    counters.push_back(Sum(std::move(name), Counter::Unit::kCount, std::move(changes)));
  }
  return counters;
}

std::vector<Counter> CommCounters(const Trace& trace) {
  std::vector<LevelChange> changes;
  for (const CommNode& one : CommNodes(trace)) {
    const Comm* comm = trace.comm(one.node);
    const auto start = trace.start(one.work());
    const auto duration = CommDuration(trace, one);
    if (comm == nullptr || !comm->bytes || !start || !duration || duration->count <= 0) continue;
    const double rate =
        static_cast<double>(comm->bytes->count) * 1e9 / static_cast<double>(duration->count);
    if (!(rate >= 1) || rate > 1e18) continue;
    const auto whole = static_cast<int64_t>(rate);
    changes.push_back({*start, whole});
    changes.push_back({*start + *duration, -whole});
  }
  if (changes.empty()) return {};
  return {Sum("communication", Counter::Unit::kBytesPerSecond, std::move(changes))};
}

// Storages used by operators.
class TensorUses {
 public:
  explicit TensorUses(const Trace& trace) : trace_(trace) {}

  std::vector<Counter> Run() {
    ForEachNode(trace_, [&](NodeId node) {
      const auto start = trace_.start(node);
      if (!start) return;
      const Nanos end = *start + trace_.duration(node).value_or(Nanos{});
      Use(trace_.input_list(node), *start, end);
      Use(trace_.output_list(node), *start, end);
    });
    std::map<std::string, std::vector<LevelChange>> changes;
    for (const auto& [storage, life] : lives_) {
      auto& of_device = changes[std::string(trace_.text(life.device))];
      of_device.push_back({life.first, life.bytes});
      of_device.push_back({life.last, -life.bytes});
    }
    std::vector<Counter> counters;
    for (auto& [device, sum] : changes) {
      counters.push_back(Sum("tensors on " + device, Counter::Unit::kBytes, std::move(sum)));
    }
    return counters;
  }

 private:
  struct Life {
    Nanos first;
    Nanos last;
    int64_t bytes = 0;
    StringId device;
  };

  void Use(ValueListId list, Nanos start, Nanos end) {
    if (!list) return;
    for (const TensorId id : TensorsOf(list)) {
      const TensorUse& use = trace_.tensor(id);
      int64_t elements = 0;
      int64_t bytes = 0;
      if (__builtin_add_overflow(use.offset, use.numel, &elements)) continue;
      if (__builtin_mul_overflow(elements, use.element_bytes, &bytes)) continue;
      if (use.storage == 0 || !use.device || bytes <= 0) continue;
      const auto [at, is_new] = lives_.emplace(
          use.storage, Life{.first = start, .last = end, .bytes = bytes, .device = use.device});
      if (is_new) continue;
      Life& life = at->second;
      life.first = std::min(life.first, start);
      life.last = std::max(life.last, end);
      life.bytes = std::max(life.bytes, bytes);
    }
  }

  // Returns the tensors of a list and its nested lists; lists are interned, so each is resolved
  // once.
  const std::vector<TensorId>& TensorsOf(ValueListId list) {
    const auto [at, is_new] = tensors_.try_emplace(list);
    if (!is_new) return at->second;
    std::vector<TensorId> found;
    std::vector<ValueListId> open = {list};
    std::unordered_set<ValueListId> seen = {list};
    for (size_t i = 0; i < open.size(); ++i) {
      for (const Value& value : trace_.values(open[i])) {
        if (value.kind == ValueKind::kTensor) found.push_back(value.as_tensor());
        const bool is_list = value.kind == ValueKind::kList;
        if (is_list && seen.insert(value.as_list()).second) open.push_back(value.as_list());
      }
    }
    return tensors_[list] = std::move(found);
  }

  const Trace& trace_;
  std::unordered_map<ValueListId, std::vector<TensorId>> tensors_;
  std::map<uint64_t, Life> lives_;
};

}  // namespace

std::vector<Counter> TimelineCounters(const Trace& trace) {
  std::vector<Counter> counters = QueueCounters(trace);
  for (auto&& more : {CommCounters(trace), TensorUses(trace).Run()}) {
    counters.insert(counters.end(), more.begin(), more.end());
  }
  std::erase_if(counters, [](const Counter& counter) { return counter.points.empty(); });
  return counters;
}

}  // namespace etude
