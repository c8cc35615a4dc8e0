#include "src/torch/replay_description.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <torch/headeronly/version.h>

#include "src/base/container/intervals.h"
#include "src/run/activity.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Work by lane: threads or streams.
class LaneTimes {
 public:
  void Add(LaneId lane, Interval time) {
    by_lane_[lane].push_back(time);
    all_.push_back(time);
  }
  // Returns how much longer the work takes serially than in parallel.
  Nanos Overlap() const {
    Nanos sum;
    for (const auto& [lane, times] : by_lane_) sum = sum + TimeSet(times).length();
    return sum - TimeSet(all_).length();
  }

 private:
  std::map<LaneId, std::vector<Interval>> by_lane_;
  std::vector<Interval> all_;
};

// Returns the overlap of topmost operators; nullopt if more than a few lack times.
std::optional<Nanos> ThreadOverlap(const RecordedStep& step) {
  const Trace& trace = step.trace();
  LaneTimes times;
  uint64_t untimed = 0;
  for (const NodeId node : step.top_operators()) {
    const std::optional<Interval> time = TimeOf(trace, node);
    if (time) times.Add(trace.lane_id(node), *time);
    untimed += time ? 0 : 1;
  }
  if (trace.traits().exclusive_durations || !FewAreUntimed(untimed, step.top_operators().size())) {
    return std::nullopt;
  }
  return times.Overlap();
}

// Returns the share of the recorded step in which a topmost operator ran, on any thread.
std::optional<double> OperatorShare(const RecordedStep& step) {
  const Trace& trace = step.trace();
  const NodeId mark = step.mark();
  if (!mark || !trace.start(mark) || trace.duration(mark).value_or(Nanos{}).count <= 0) {
    return std::nullopt;
  }
  const Interval whole{*trace.start(mark), *trace.start(mark) + *trace.duration(mark)};
  std::vector<Interval> spans;
  for (const NodeId node : step.top_operators()) {
    const auto start = trace.start(node);
    const auto duration = trace.duration(node);
    if (start && duration) spans.push_back({*start, *start + *duration});
  }
  const size_t all = step.top_operators().size();
  if (!FewAreUntimed(all - spans.size(), all)) return std::nullopt;
  const Nanos covered = TimeSet(std::move(spans)).Within(whole);
  return static_cast<double>(covered.count) / static_cast<double>(whole.length().count);
}

// Returns the duration of a label without the operators inside it.
std::optional<Nanos> OwnDuration(const ReplayedStep& replayed, NodeId label) {
  const RecordedStep& step = replayed.recorded();
  const Trace& trace = step.trace();
  std::optional<Nanos> own = replayed.times().duration(label);
  if (trace.traits().exclusive_durations) return own;
  const uint32_t begin = step.position(label);
  for (const NodeId node : step.top_operators()) {
    const uint32_t position = step.position(node);
    if (position <= begin || position > step.last_inside(begin)) continue;
    NodeId above = trace.parent(node);
    uint32_t below = position;
    while (above && above != label && step.position(above) < below) {
      below = step.position(above);
      above = trace.parent(above);
    }
    const auto duration = replayed.times().duration(node);
    if (above != label || !own) continue;
    own = duration ? std::optional(std::max(Nanos{}, *own - *duration)) : std::nullopt;
  }
  return own;
}

// Returns the recorded time of everything that counts; nullopt if it is 0, or more than a few nodes
// lack times.
std::optional<Nanos> TimeOfAll(const ReplayedStep& step) {
  Nanos total;
  uint64_t all = 0;
  uint64_t untimed = 0;
  const auto add = [&](std::optional<Nanos> duration) {
    ++all;
    untimed += duration ? 0 : 1;
    total = total + duration.value_or(Nanos{});
  };
  for (const NodeId node : step.selection().top()) add(step.times().duration(node));
  for (const NodeId node : step.compiled_code()) add(OwnDuration(step, node));
  if (!FewAreUntimed(untimed, all) || total.count <= 0) return std::nullopt;
  return total;
}

// Returns whether a node is one of `outer` or inside one.
bool IsIn(const RecordedStep& step, NodeId node, std::span<const NodeId> outer) {
  const uint32_t position = step.position(node);
  return std::ranges::any_of(outer, [&](NodeId one) {
    const uint32_t begin = step.position(one);
    return begin <= position && position <= step.last_inside(begin);
  });
}

// Device work of the step, by launching operator.
struct DeviceWork {
  Nanos all;
  Nanos replayed;
  LaneTimes streams;
  std::vector<NodeId> without_operator;  // host nodes outside of operators that launched work
};

DeviceWork FindDeviceWork(const ReplayedStep& step) {
  DeviceWork found;
  const std::vector<LaunchedWork>* launched = step.options().launched;
  if (launched == nullptr || launched->empty() || !step.options().only.empty()) return found;
  const RecordedStep& recorded = step.recorded();
  std::unordered_map<uint64_t, NodeId> by_id;
  for (const NodeId node : recorded.nodes()) by_id.emplace(step.trace().source_id(node), node);
  const auto& running = step.selection().nodes();
  const std::unordered_set<NodeId> runs(running.begin(), running.end());
  for (const LaunchedWork& work : *launched) {
    const auto host = by_id.find(work.host);
    if (host == by_id.end()) continue;
    found.all = found.all + work.time;
    if (work.start) found.streams.Add(work.lane, {*work.start, *work.start + work.time});
    const uint32_t position = recorded.position(host->second);
    NodeId op =
        recorded.is_operator(position) ? host->second : recorded.enclosing_operator(position);
    // Work of batched sends and receives is below a label of the backend.
    const bool communicates = !op && IsCommLabel(step.trace().name(host->second));
    if (communicates && step.options().group != nullptr)
      found.replayed = found.replayed + work.time;
    if (!op && !communicates && !IsIn(recorded, host->second, step.compiled_code())) {
      found.without_operator.push_back(host->second);
    }
    // Of a replaced operator only work launched by its parts runs.
    while (op && !runs.contains(op)) op = recorded.enclosing_operator(recorded.position(op));
    if (op) found.replayed = found.replayed + work.time;
  }
  return found;
}

void DescribeSkipped(const ReplayedStep& step, const DeviceWork& devices, ReplayReport& report) {
  const Trace& trace = step.trace();
  const std::optional<Nanos> total = TimeOfAll(step);
  std::map<std::pair<std::string, std::string>, SkippedOperators> rows;
  double skipped_share = 0;
  const auto add = [&](std::string_view op, NodeId node, const std::string& reason,
                       std::optional<Nanos> duration, bool stands_in = false) {
    SkippedOperators& row = rows[SkippedKey(op, reason)];
    row.op = op;
    if (stands_in) row.stand_in = row.stand_in + duration.value_or(Nanos{});
    row.stand_in_asked = step.StandsIn(node);
    row.schema = SchemaOf(trace, node);
    if (row.reason.empty()) row.reason = reason;
    ++row.count;
    if (!total || !duration) return;
    const double share = static_cast<double>(duration->count) / static_cast<double>(total->count);
    row.time_share = row.time_share.value_or(0) + share;
    skipped_share += share;
  };
  for (const auto& skipped : step.selection().skipped()) {
    add(OperatorNameOf(trace, skipped.node), skipped.node, skipped.reason,
        step.times().duration(skipped.node), step.StandsIn(skipped.node));
  }
  for (const OwnCode& code : step.code_left_out()) {
    add(OperatorNameOf(trace, code.node), code.node,
        step.WhyNotBound(code.node) + "; only the operators that it called were run", code.time,
        /*stands_in=*/true);
  }
  for (const NodeId node : step.compiled_code()) {
    add(CompiledCode(trace.name(node)), node,
        "compiled code: the trace contains only its operators", OwnDuration(step, node));
  }
  for (const NodeId node : devices.without_operator) {
    add(trace.name(node), node,
        "device work not launched by an operator, such as a CUDA graph or a custom kernel",
        std::nullopt);
  }
  for (auto& [key, row] : rows) report.skipped.push_back(std::move(row));
  if (total) report.time_coverage = std::max(0.0, 1.0 - skipped_share);
}

// Returns the topmost operators without a recorded time, by name; empty if the trace has no times.
std::vector<NamedCount> Untimed(const ReplayedStep& step) {
  std::map<std::string, int64_t> counts;
  int64_t untimed = 0;
  for (const NodeId node : step.selection().top()) {
    if (step.times().duration(node)) continue;
    ++counts[std::string(OperatorNameOf(step.trace(), node))];
    ++untimed;
  }
  std::vector<NamedCount> rows;
  if (untimed == static_cast<int64_t>(step.selection().top().size())) return rows;
  for (const auto& [name, count] : counts) rows.push_back({name, count});
  return rows;
}

// Returns the number of communications in groups with missing ranks.
int64_t CountEmulated(const ReplayedStep& step) {
  const RankGroup* group = step.options().group;
  if (group == nullptr) return 0;
  return std::ranges::count_if(step.plan().ops, [&](const PlannedOp& op) {
    const BoundOperator& bound = step.bound(op.node);
    return bound.communicates() && !group->IsThere(bound.channel().group);
  });
}

}  // namespace

void DescribeReplay(const ReplayedStep& step, ReplayReport& report) {
  const Trace& trace = step.trace();
  const ReplayOptions& options = step.options();
  const OperatorSelection& selection = step.selection();
  report.device = step.devices().target();
  report.torch_version = TORCH_VERSION;
  report.rank = trace.info().rank;
  report.threads = static_cast<int>(options.threads);
  report.seed = options.seed;
  const DeviceWork devices = FindDeviceWork(step);
  report.operators = static_cast<int64_t>(selection.top().size() + step.compiled_code().size() +
                                          devices.without_operator.size());
  if (devices.all > Nanos{}) {
    report.device_time = devices.all;
    report.device_coverage =
        static_cast<double>(devices.replayed.count) / static_cast<double>(devices.all.count);
    report.stream_overlap = devices.streams.Overlap();
  }
  std::unordered_set<NodeId> replayed = selection.ReplayedTop();
  for (const OwnCode& code : step.code_left_out()) {
    NodeId node = code.node;
    while (node && replayed.erase(node) == 0) {
      node = step.recorded().enclosing_operator(step.recorded().position(node));
    }
  }
  report.operators_replayed = static_cast<int64_t>(replayed.size());
  report.calls = static_cast<int64_t>(step.plan().ops.size());
  report.part = {.label = options.label, .only = options.only, .skip = options.skip};
  report.stats = trace.stats();
  if (const NodeId mark = step.recorded().mark())
    report.recorded_step = step.times().duration(mark);
  report.operator_share = OperatorShare(step.recorded());
  report.thread_overlap = ThreadOverlap(step.recorded());
  report.outside_bytes = step.memory().bytes();
  report.copied_bytes = step.memory().copied_bytes();
  report.peak_bytes = step.plan().peak_bytes;
  DescribeSkipped(step, devices, report);
  report.untimed = Untimed(step);
  report.emulated = CountEmulated(step);
  OperatorCounts replaced;
  for (const NodeId node : selection.replaced()) {
    ++replaced[std::string(FullOperatorName(SchemaOf(trace, node)))];
  }
  for (const auto& [name, count] : replaced) report.replaced_by_parts.push_back({name, count});
}

}  // namespace etude
