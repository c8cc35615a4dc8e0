#include "src/transform/edit/retime.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "src/base/container/intervals.h"
#include "src/run/activity.h"
#include "src/transform/edit/rewrite.h"

namespace etude {
namespace {

// Calls `fn(node, interval)` for each interval in which a host node runs itself, thread by thread.
template <typename Fn>
void ForEachOwnInterval(const Trace& trace, Fn fn) {
  std::map<LaneId, std::vector<NodeId>> lanes;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.place(node) == Place::kDevice || !TimeOf(trace, node)) return;
    lanes[trace.lane_id(node)].push_back(node);
  });
  for (auto& [lane, nodes] : lanes) {
    std::ranges::sort(nodes, {}, [&](NodeId node) {
      return std::tuple(*trace.start(node), Nanos{} - *trace.duration(node), node.index());
    });
    std::vector<NodeId> open;
    Nanos now;
    const auto run_until = [&](Nanos end) {
      if (end <= now) return;
      fn(open.back(), Interval{now, end});
      now = end;
    };
    for (const NodeId node : nodes) {
      const Nanos start = *trace.start(node);
      while (!open.empty() && *EndOf(trace, open.back()) <= start) {
        run_until(*EndOf(trace, open.back()));
        open.pop_back();
      }
      if (!open.empty()) run_until(start);
      now = start;
      open.push_back(node);
    }
    while (!open.empty()) {
      run_until(*EndOf(trace, open.back()));
      open.pop_back();
    }
  }
}

}  // namespace

std::vector<TimeChange> HostChanges(const Trace& trace, std::span<const Nanos> longer) {
  std::map<NodeId, std::vector<Interval>> intervals;
  ForEachOwnInterval(trace, [&](NodeId node, Interval interval) {
    if (longer[node.index()] != Nanos{}) intervals[node].push_back(interval);
  });
  std::vector<TimeChange> changes;
  for (const auto& [node, own] : intervals) {
    const Nanos wanted = longer[node.index()];
    Nanos all;
    for (const Interval& interval : own) all = all + (interval.end - interval.begin);
    const double share = static_cast<double>(wanted.count) / static_cast<double>(all.count);
    Nanos done;  // so far
    Nanos seen;
    for (const Interval& interval : own) {
      const Nanos length = interval.end - interval.begin;
      seen = seen + length;
      const Nanos until{std::llround(share * static_cast<double>(seen.count))};
      const Nanos part = std::max(until - done, Nanos{} - length);
      done = done + part;
      if (part == Nanos{}) continue;
      const Nanos at = part < Nanos{} ? interval.end + part : interval.begin + Nanos{1};
      // Inside of the interval, so that the node and all that begins at its end are later.
      changes.push_back({.at = std::min(at, interval.end - Nanos{1}), .length = part});
    }
  }
  return changes;
}

std::vector<TimeChange> DeviceChanges(const Trace& trace, std::span<const Nanos> longer) {
  std::vector<TimeChange> changes;
  ForEachNode(trace, [&](NodeId node) {
    const auto time = TimeOf(trace, node);
    const Nanos more = longer[node.index()];
    if (trace.place(node) != Place::kDevice || !time || more == Nanos{}) return;
    changes.push_back({.at = more < Nanos{} ? time->end + more : time->end, .length = more});
  });
  return changes;
}

void ChangeTimes(NodeRow& row, const TimeShift& host, const TimeShift& device, Nanos longer) {
  if (row.exclusive) row.exclusive = std::max(*row.exclusive + longer, Nanos{});
  if (!row.start) return;
  if (row.place == Place::kDevice) {
    row.start = device.Begin(*row.start);
    if (row.duration) row.duration = std::max(*row.duration + longer, Nanos{});
    return;
  }
  const Nanos begin = host.Begin(*row.start);
  if (row.duration) row.duration = std::max(host.End(*row.start + *row.duration) - begin, Nanos{});
  row.start = begin;
}

Result<Trace> Retime(const Trace& trace, std::span<const Nanos> longer, const Limits& limits) {
  const TimeShift host(HostChanges(trace, longer));
  const TimeShift device(DeviceChanges(trace, longer));
  return RewriteTrace(trace, limits, [&](RewrittenNode& node, TraceBuilder&) -> Status {
    ChangeTimes(node.row, host, device, longer[node.node.index()]);
    return {};
  });
}

}  // namespace etude
